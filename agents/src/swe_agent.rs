//! Trajectories of SWE-agent.
