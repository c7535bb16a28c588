#!/usr/bin/env node
// Starts the binary of this platform, which npm installed as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const platform = `forge-store-${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${platform}/forge`);
} catch {
  console.error(`forge: the package ${platform} is not installed.`);
  console.error("Install forge-store without '--omit=optional'. On a platform that has no package, build forge from source.");
  process.exit(1);
}
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
// The terminal sends SIGINT to both processes; the binary decides what it means.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`forge: ${binary} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (status, signal) => process.exit(signal ? 128 + constants.signals[signal] : status));
