// @MARK@: passes OpenCode's events on to forge, and what forge hands back on to the model.
import { spawn } from "node:child_process"

const FORGE = "@FORGE@"
const PATIENCE_MS = 10000

// The answer of 'forge hook opencode EVENT', or undefined: forge never stops or breaks the agent.
function ask(event, input) {
  return new Promise((resolve) => {
    let said = ""
    try {
      const child = spawn(FORGE, ["hook", "opencode", event], {
        cwd: input.cwd,
        stdio: ["pipe", "pipe", "ignore"],
        timeout: PATIENCE_MS,
      })
      child.on("error", () => resolve(undefined))
      child.stdin.on("error", () => {})
      child.stdout.on("data", (part) => (said += part))
      child.on("close", () => {
        try {
          resolve(JSON.parse(said) ?? undefined)
        } catch {
          resolve(undefined)
        }
      })
      child.stdin.end(JSON.stringify(input))
    } catch {
      resolve(undefined)
    }
  })
}

const textsOf = (answer) => (Array.isArray(answer?.context) ? answer.context : [])

export const Forge = async ({ client, directory, worktree }) => {
  const base = (sessionID, more) => ({ sessionID, cwd: directory, worktree, ...more })

  // What each session's system prompt is to hold since its last compaction. OpenCode builds the prompt for each
  // request, so the same texts are put in each time; forge is asked once.
  const briefs = new Map()
  const askForBrief = (sessionID) => {
    const brief = ask("chat.system.transform", base(sessionID)).then((answer) => {
      // Without an answer the next request asks again.
      if (!answer && briefs.get(sessionID) === brief) briefs.delete(sessionID)
      return textsOf(answer)
    })
    briefs.set(sessionID, brief)
    return brief
  }
  const compacted = async (sessionID) => {
    const noted = ask("session.compacted", base(sessionID))
    briefs.set(sessionID, noted.then(() => askForBrief(sessionID)))
    await noted
  }

  // What is asked in the session of a sub-agent, an agent asks.
  const parents = new Map()
  const isOfPerson = async (sessionID) => {
    if (!parents.has(sessionID)) {
      const found = await client?.session?.get?.({ path: { id: sessionID } }).catch(() => undefined)
      parents.set(sessionID, found?.data?.parentID)
    }
    return !parents.get(sessionID)
  }

  // A slash command as it was typed; the message that follows holds the text that it stands for.
  const typed = new Map()

  return {
    event: async ({ event }) => {
      const about = event.properties ?? {}
      const session = about.sessionID ?? about.info?.id
      switch (event.type) {
        case "session.created":
          parents.set(session, about.info?.parentID)
          await ask(event.type, base(session, { parentID: about.info?.parentID }))
          break
        case "session.compacted":
          await compacted(session)
          break
        case "session.deleted":
          briefs.delete(session)
          await ask(event.type, base(session))
          break
        case "session.idle":
          await ask(event.type, base(session))
      }
    },
    "command.execute.before": async (input) => {
      typed.set(input.sessionID, `/${input.command} ${input.arguments ?? ""}`.trim())
    },
    "chat.message": async (input, output) => {
      const { sessionID, agent } = input
      const parts = (output?.parts ?? []).filter((part) => part.type === "text" && !part.synthetic)
      const text = typed.get(sessionID) ?? parts.map((part) => part.text).join("\n")
      typed.delete(sessionID)
      const prompt = (await isOfPerson(sessionID)) ? text : undefined
      const messageID = output?.message?.id ?? input.messageID
      await ask("chat.message", base(sessionID, { messageID, prompt, agent }))
    },
    "tool.execute.after": async (input, output) => {
      const { tool, sessionID, callID, args } = input
      if (["todoread", "todowrite", "task"].includes(tool)) return
      // Of other tools only what they were given is kept.
      const result = tool === "bash" ? { output: output?.output, metadata: { exit: output?.metadata?.exit } } : undefined
      await ask("tool.execute.after", base(sessionID, { tool, callID, args, output: result }))
    },
    "experimental.session.compacting": async (input, output) => {
      output.context.push(...textsOf(await ask("session.compacting", base(input.sessionID))))
    },
    // This comes before the first request after a compaction; the event of it may come after.
    "experimental.compaction.autocontinue": async (input) => {
      await compacted(input.sessionID)
    },
    "experimental.chat.system.transform": async (input, output) => {
      const { sessionID } = input
      if (sessionID) output.system.push(...(await (briefs.get(sessionID) ?? askForBrief(sessionID))))
    },
  }
}
