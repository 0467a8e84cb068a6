import type { Command } from 'commander'

import type { SetExit } from './main.ts'

/** The same program that the installed hooks start without the rest of the command line. */
const SCRIPT = new URL('../../bin/hook.cjs', import.meta.url).href

export function addHook(program: Command, setExit: SetExit): void {
  program
    .command('hook')
    .description(
      'what a command-line agent calls at its events: reads one from standard input, answers as the agent expects',
    )
    .argument('<client>', 'claude, codex or gemini')
    .argument('[event]', 'the event, for a client that gives it as an argument')
    .option('--start-daemon', 'at the start of a session, start the daemon if none is running')
    .action(async (client: string, event: string | undefined, _: unknown, command: Command) => {
      const { home, store, startDaemon } = command.optsWithGlobals<{
        home?: string
        store?: string
        startDaemon?: true
      }>()
      const { main } = (await import(SCRIPT)) as { readonly main: (argv: readonly string[]) => Promise<number> }
      const place = [
        ...(home === undefined ? [] : ['--home', home]),
        ...(store === undefined ? [] : ['--store', store]),
      ]
      const flags = [...place, ...(startDaemon === true ? ['--start-daemon'] : [])]
      setExit(await main([client, ...flags, ...(event === undefined ? [] : [event])]))
    })
}
