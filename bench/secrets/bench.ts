import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { keyPlace } from '../../src/secrets/key.ts'
import { KnownSecrets } from '../../src/secrets/known.ts'
import { Secrets } from '../../src/secrets/secrets.ts'
import { defineBench } from '../bench.ts'
import type { Row } from '../bench.ts'

const source = readFileSync(new URL('../../src/cli/clients/hooks.ts', import.meta.url), 'utf8')
const prose = 'Please look at the latest changes in the repository, and see https://example.org/a/b for more.\n'
const fill = (text: string, length: number) => text.repeat(Math.ceil(length / text.length)).slice(0, length)

const TEXTS: Readonly<Record<string, string>> = {
  'an id': 'run_01a1e0ae3100712abb11a909ab6363a4',
  'a tool call': JSON.stringify({ tool: 'ledger_append', input: { entry: 'x'.repeat(380) } }),
  '32 KiB of prose': fill(prose, 32 * 1024),
  '1 MiB of prose': fill(prose, 1024 * 1024),
  '1 MiB of sources': fill(source, 1024 * 1024),
  '1 MiB of "sk-"': fill('sk-', 1024 * 1024),
  '1 MiB of "password="': fill('password=', 1024 * 1024),
}

function measure(work: (text: string) => string, text: string): number {
  const rounds = Math.max(3, Math.round(4e6 / text.length))
  const times = Array.from({ length: 3 }, () => {
    const began = process.hrtime.bigint()
    for (let round = 0; round < rounds; round += 1) work(text)
    return Number(process.hrtime.bigint() - began) / rounds
  })
  return Math.min(...times)
}

/** What it costs to look for secrets in text on its way into the database and out of it. */
export const bench = defineBench({
  name: 'secrets',
  what: 'looking for secrets in text on its way in and out',
  full: { known: 20 },
  quick: { known: 20 },
  async run({ known: count }): Promise<Row[]> {
    const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
    const known = Array.from({ length: count }, (_, index) => [
      `K${index}`,
      { value: randomBytes(24).toString('base64url') },
    ])
    const secrets = new Secrets(keyPlace(home, undefined), new KnownSecrets(Object.fromEntries(known)))
    const rows = Object.entries(TEXTS).flatMap(([name, text]) => {
      const row = (way: string, ns: number): Row => ({
        name: `${name}, ${way}`,
        value: ns / text.length,
        unit: 'ns a character',
      })
      const seal = measure((each) => secrets.seal(each), text)
      return [
        row('in', seal),
        row(
          'out',
          measure((each) => secrets.open(each), text),
        ),
      ]
    })
    rmSync(home, { recursive: true, force: true })
    return rows
  },
})
