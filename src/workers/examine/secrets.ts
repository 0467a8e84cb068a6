import { existsSync, statSync } from 'node:fs'

import { describeDumps } from '../../processes/crash-dumps.ts'
import { secretsAt } from '../../secrets/folders.ts'
import type { Finding } from './examine.ts'

const OTHERS = 0o077

/** What is kept out of files and answers, under which key, and who else could read it. */
export function examineSecrets(home: string): Finding[] {
  const secrets = secretsAt(home)
  if (secrets === undefined) return []
  const { path } = secrets.key.place
  const names = secrets.known.names.length
  const known = `${names} known ${names === 1 ? 'secret is' : 'secrets are'} hidden, and what has the shape of one`
  const detail = existsSync(path)
    ? `${known}; the key ${secrets.key.idIfThere ?? ''} is ${path}`
    : `${known}; no key was needed yet`
  const isOpen = existsSync(path) && (statSync(path).mode & OTHERS) !== 0
  return [
    isOpen
      ? { check: 'secrets', status: 'fail', detail: `others can read the key ${path}`, remedy: `chmod 600 ${path}` }
      : { check: 'secrets', status: 'ok', detail },
    examineDumps(),
  ]
}

function examineDumps(): Finding {
  const { off, detail } = describeDumps()
  if (off) return { check: 'crash dumps', status: 'ok', detail: `off: ${detail}` }
  return { check: 'crash dumps', status: 'warn', detail, remedy: 'start the daemon with `ulimit -c 0`' }
}
