import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import type { Command } from 'commander'

import { PACKAGE_FOLDER } from '../../base/place.ts'
import type { SetExit } from '../main.ts'

/** The same program that the installed hooks start without the rest of the command line. */
const SCRIPT = pathToFileURL(join(PACKAGE_FOLDER, 'bin', 'hook.cjs')).href

export function addHook(own: Command, setExit: SetExit): void {
  own
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
