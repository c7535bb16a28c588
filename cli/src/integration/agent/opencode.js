// @MARK@: passes OpenCode's events on to forge, and what forge hands back on to the model.
import { spawn } from "node:child_process"

const FORGE = "@FORGE@"
const PATIENCE_MS = 10000

// The answer of 'forge hook opencode EVENT', or nothing: forge never stops or breaks the agent.
function ask(event, input) {
  return new Promise((resolve) => {
    let said = ""
    try {
      const child = spawn(FORGE, ["hook", "opencode", event], {
        cwd: input.cwd,
        stdio: ["pipe", "pipe", "ignore"],
        timeout: PATIENCE_MS,
      })
      child.on("error", () => resolve({}))
      child.stdin.on("error", () => {})
      child.stdout.on("data", (part) => (said += part))
      child.on("close", () => {
        try {
          resolve(JSON.parse(said) ?? {})
        } catch {
          resolve({})
        }
      })
      child.stdin.end(JSON.stringify(input))
    } catch {
      resolve({})
    }
  })
}

export const Forge = async ({ directory, worktree }) => {
  const base = (sessionID, more) => ({ sessionID, cwd: directory, worktree, ...more })
  const put = (list, answer) => {
    for (const text of Array.isArray(answer.context) ? answer.context : []) list.push(text)
  }
  return {
    event: async ({ event }) => {
      const about = event.properties ?? {}
      const session = about.sessionID ?? about.info?.id
      switch (event.type) {
        case "session.created":
        case "session.idle":
        case "session.compacted":
        case "session.deleted":
          await ask(event.type, base(session, { parentID: about.info?.parentID }))
      }
    },
    "chat.message": async (input, output) => {
      const parts = (output?.parts ?? []).filter((part) => part.type === "text" && !part.synthetic)
      const prompt = parts.map((part) => part.text).join("\n")
      await ask("chat.message", base(input.sessionID, { prompt, agent: input.agent }))
    },
    "tool.execute.after": async (input, output) => {
      const { tool, sessionID, callID, args } = input
      if (!["bash", "edit", "write", "patch", "apply_patch"].includes(tool)) return
      const { output: text, metadata } = output ?? {}
      await ask("tool.execute.after", base(sessionID, { tool, callID, args, output: { output: text, metadata } }))
    },
    "experimental.session.compacting": async (input, output) => {
      put(output.context, await ask("session.compacting", base(input.sessionID)))
    },
    "experimental.chat.system.transform": async (input, output) => {
      if (input.sessionID) put(output.system, await ask("chat.system.transform", base(input.sessionID)))
    },
  }
}
