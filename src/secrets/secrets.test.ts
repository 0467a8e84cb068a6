import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, describe, expect, test } from 'vitest'

import { HARMLESS, KNOWN, SHAPED } from '../../test/support/secrets.ts'
import { refuseMissing } from './codec.ts'
import { secretsOf } from './from-environment.ts'
import { gatherKnown } from './gather.ts'
import { hasSealed } from './in-file.ts'
import { keyPlace } from './key.ts'
import { KnownSecrets } from './known.ts'
import { putBack, redactJson, withNames } from './redact.ts'
import { Secrets } from './secrets.ts'
import { StreamOpener, StreamSealer, withoutHalves } from './stream.ts'

const folders: string[] = []
const newHome = () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-secrets-'))
  folders.push(folder)
  return folder
}
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })))

const asSources = (values: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value }]))
const openAt = (home: string, known: Readonly<Record<string, string>> = KNOWN) =>
  new Secrets(keyPlace(home, undefined), new KnownSecrets(asSources(known)))
const secrets = openAt(newHome())

const ALL = [
  ...Object.entries(KNOWN).map(([name, secret]) => ({ name, text: secret, secret })),
  ...Object.entries(SHAPED).map(([name, each]) => ({ name, ...each })),
]

/** The ways in which a text gets into a database. */
const WRITTEN: Readonly<Record<string, (text: string) => string>> = {
  'as it is': (text) => text,
  'between words': (text) => `use ${text} for it`,
  'on its own line': (text) => `first\n${text}\nlast`,
  'in JSON': (text) => JSON.stringify({ input: { value: text, n: 1 } }),
  'in JSON in JSON': (text) => JSON.stringify({ body: JSON.stringify({ said: text }) }),
  'in JSON, in lines': (text) => JSON.stringify({ said: `a\n${text}\nb` }, null, 2),
}

describe('what is stored', () => {
  for (const [how, write] of Object.entries(WRITTEN)) {
    test(`${how}: no secret is in it, it comes back to the byte, and the same text is stored the same way`, () => {
      for (const { name, text, secret } of ALL) {
        const written = write(text)
        const sealed = secrets.seal(written)
        for (const form of [secret, JSON.stringify(secret).slice(1, -1)]) expect(sealed, name).not.toContain(form)
        expect(secrets.open(sealed), name).toBe(written)
        expect(secrets.seal(written), name).toBe(sealed)
      }
    })
  }

  test('what is JSON stays JSON, so whoever looks into the database can still read it', () => {
    for (const { text } of ALL) JSON.parse(secrets.seal(JSON.stringify({ input: text })))
  })

  test('harmless text is stored as it is', () => {
    for (const text of HARMLESS) expect(secrets.seal(text)).toBe(text)
  })

  test('of this house, no line of the sources is taken for a secret', () => {
    const own = [
      '../base/ids.ts',
      '../config/notify.ts',
      '../cli/house/token.ts',
      './shapes.ts',
      './known.ts',
      './key.ts',
    ]
    for (const name of own) {
      const text = readFileSync(new URL(name, import.meta.url), 'utf8')
      expect(secrets.seal(text).replaceAll('~hf=~', '~hf')).toBe(text)
    }
  })

  test('a known value is a reference with its name, and nothing of the value', () => {
    const sealed = secrets.seal(`x ${KNOWN['PLAIN_TOKEN']} y`)
    expect(sealed).toMatch(/^x ~hf:r:[0-9a-f]{8}:PLAIN_TOKEN:raw:[\w-]{16}~ y$/)
  })

  test('a known value inside of a shape is a reference, and the rest of the shape is sealed around it', () => {
    const known = KNOWN['PLAIN_TOKEN'] ?? ''
    expect(secrets.seal(`Authorization: Bearer ${known}`)).toMatch(/^Authorization: Bearer ~hf:r:[^~]+~$/)
    const longer = `sk-ant-api03-${known}0123456789`
    expect(secrets.seal(longer)).toMatch(/^~hf:e:[^~]+~~hf:r:[^~]+~~hf:e:[^~]+~$/)
    expect(secrets.open(secrets.seal(longer))).toBe(longer)
  })

  test('known values that overlap leave nothing behind', () => {
    const both = openAt(newHome(), { ONE: 'abcdefgh12345678', TWO: '12345678ijklmnop' })
    const text = 'abcdefgh12345678ijklmnop'
    expect(both.seal(text)).not.toContain('ijkl')
    expect(both.open(both.seal(text))).toBe(text)
  })

  test('text of any kind and any length comes back to the byte', () => {
    const pieces = [
      ...ALL.map(({ text }) => text),
      ...HARMLESS,
      '~',
      '~hf',
      '~hf:',
      '=~',
      '?',
      '\\',
      '"',
      '\n',
      'ü',
      '🔑',
      '-----',
    ]
    let state = 7
    const next = (most: number) => (state = (state * 48_271) % 2_147_483_647) % most
    for (let round = 0; round < 2_000; round += 1) {
      const text = Array.from({ length: next(8) }, () => pieces[next(pieces.length)]).join(next(2) === 0 ? '' : ' ')
      expect(secrets.open(secrets.seal(text))).toBe(text)
    }
  })

  test('a hostile text takes no longer than another: a megabyte of beginnings is read once', () => {
    for (const piece of [
      'eyJ',
      'sk-',
      '-----BEGIN PRIVATE KEY-----\n',
      'password=',
      'Bearer ',
      '://a:',
      '~hf',
      'ghp_',
      '\\\\n',
    ]) {
      const text = piece.repeat(Math.ceil(1_000_000 / piece.length))
      expect(secrets.open(secrets.seal(text))).toBe(text)
    }
  })
})

describe('what looks like ours', () => {
  const stored = secrets.seal(`${KNOWN['PLAIN_TOKEN']} ${SHAPED['github']?.text}`)

  test('a copied token comes back as the text that it is, and never as the value', () => {
    expect(stored).toMatch(/~hf:r:.*~hf:e:/)
    const again = secrets.seal(stored)
    expect(again).not.toBe(stored)
    expect(secrets.open(again)).toBe(stored)
    expect(secrets.open(again)).not.toContain(KNOWN['PLAIN_TOKEN'])
    expect(secrets.open(secrets.seal(again))).toBe(again)
  })

  test('half a token, a changed one and one that was made up have no value', () => {
    const forged = stored.replace(/PLAIN_TOKEN/, 'HEX_KEY')
    expect(secrets.open(forged)).not.toContain(KNOWN['HEX_KEY'])
    const changed = stored.replace(/(~hf:e:\w+:)./, '$1A')
    expect(secrets.open(changed)).not.toContain(SHAPED['github']?.text)
    for (const text of ['~hf', '~hf=~', '~hf:', '~hf:r:', '~hf?', '~hf~hf:~', stored.slice(0, 20), stored.slice(4)])
      expect(secrets.open(secrets.seal(text))).toBe(text)
  })
})

describe('where something is missing', () => {
  const home = newHome()
  const sealed = openAt(home).seal(`curl -H 'X: ${KNOWN['PLAIN_TOKEN']}' ${SHAPED['github']?.text}`)

  test('without the value it is shown by its name, cannot be performed, and is stored again as it was', () => {
    const without = openAt(home, {})
    const text = without.open(sealed)
    expect(text).not.toContain(KNOWN['PLAIN_TOKEN'])
    expect(without.redact(text)).toBe(`curl -H 'X: [secret PLAIN_TOKEN]' [secret: github token]`)
    expect(withNames({ messages: [{ text }] }).messages[0]?.text).toContain(`[secret PLAIN_TOKEN]' ghp_`)
    expect(() => refuseMissing({ command: text })).toThrow(/needs PLAIN_TOKEN/)
    expect(without.seal(text)).toBe(sealed)
    expect(without.seal(`password=${text}`)).toContain(sealed.slice(sealed.indexOf('~')))
  })

  test('a value that was replaced is put back as it is now', () => {
    const rotated = openAt(home, { PLAIN_TOKEN: 'another-value-altogether' })
    expect(rotated.open(sealed)).toContain("'X: another-value-altogether'")
  })

  test('a file that is written anew is read again, and its former value stays hidden', () => {
    const file = join(newHome(), 'value')
    writeFileSync(file, 'the-first-value\n')
    const fromFile = new Secrets(keyPlace(home, undefined), new KnownSecrets({ FILED: { file } }))
    const kept = fromFile.seal('use the-first-value here')
    rmSync(file)
    writeFileSync(file, 'the-second-value\n')
    expect(fromFile.open(kept)).toBe('use the-second-value here')
    expect(fromFile.redact('the-first-value, the-second-value')).toBe('[secret FILED], [secret FILED]')
  })

  test('under another key nothing is put back, and the key is named', () => {
    const elsewhere = openAt(newHome())
    elsewhere.seal(SHAPED['npm']?.text ?? '')
    const text = elsewhere.open(sealed)
    expect(text).not.toContain(KNOWN['PLAIN_TOKEN'])
    expect(text).not.toContain('ghp_')
    expect(() => refuseMissing(text)).toThrow(/another key \([0-9a-f]{8}\)/)
    expect(elsewhere.seal(text)).toBe(sealed)
  })

  test('the key is for its owner only, and a named one that is missing is not made', () => {
    const { path } = openAt(home).key.place
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readFileSync(path, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/)
    const named = new Secrets(keyPlace(home, join(home, 'not-there')))
    expect(() => named.seal(SHAPED['npm']?.text ?? '')).toThrow(/HOLDFAST_SECRET_KEY_FILE names/)
    expect(existsSync(join(home, 'not-there'))).toBe(false)
  })
})

describe('what is shown', () => {
  test('has names and shapes instead of values', () => {
    for (const { name, text, secret } of ALL) {
      const shown = secrets.redact(`a ${text} b`)
      expect(shown, name).not.toContain(secret)
      expect(shown, name).toMatch(/^a .*\[secret:? [\w .-]+\]/s)
      expect(secrets.redact(shown), name).toBe(shown)
    }
  })
})

describe('what a person changes', () => {
  const { matcher } = secrets.known
  const original = JSON.stringify({ to: 'a', token: KNOWN['QUOTED_PASSWORD'], key: SHAPED['npm']?.text })

  test('keeps the hidden values where the words for them were kept', () => {
    const shown = redactJson(original, matcher)
    expect(shown).toBe('{"to":"a","token":"[secret QUOTED_PASSWORD]","key":"[secret: npm token]"}')
    expect(putBack(original, shown.replace('"a"', '"b"'), matcher)).toBe(original.replace('"a"', '"b"'))
    expect(putBack(original, '{"to":"c"}', matcher)).toBe('{"to":"c"}')
  })

  test('is refused where the words could mean two things, so no value comes to stand elsewhere', () => {
    const twice = JSON.stringify([`npm_${'a1'.repeat(18)}`, `npm_${'b2'.repeat(18)}`])
    expect(putBack(twice, redactJson(twice, matcher), matcher)).toBeUndefined()
    const planted = JSON.stringify({ to: 'https://evil.example/?[secret PLAIN_TOKEN]', token: KNOWN['PLAIN_TOKEN'] })
    expect(putBack(planted, redactJson(planted, matcher), matcher)).toBeUndefined()
  })

  test('JSON stays JSON, whatever stands before a value', () => {
    const odd = new Secrets(keyPlace(newHome(), undefined), new KnownSecrets({ ODD: { value: 'n1234567' } }))
    const json = JSON.stringify({ text: '\n1234567 and n1234567' })
    expect(JSON.parse(redactJson(json, odd.known.matcher))).toEqual({ text: '\n1234567 and [secret ODD]' })
  })
})

describe('a stream', () => {
  const text = ['start', ...ALL.map((each) => each.text), '~hf:r:x~ und ünïcödé', 'end'].join('\n')
  const bytes = Buffer.from(text)

  test('is sealed and opened to the byte, wherever it is cut', () => {
    for (const size of [1, 2, 3, 7, 64, 1_000, bytes.length]) {
      const [sealer, opener] = [new StreamSealer(secrets), new StreamOpener(secrets)]
      const sealed: Buffer[] = []
      for (let at = 0; at < bytes.length; at += size) sealed.push(sealer.write(bytes.subarray(at, at + size)))
      sealed.push(sealer.end())
      const stored = Buffer.concat(sealed)
      for (const { name, secret } of ALL) expect(stored.includes(Buffer.from(secret)), `${name} by ${size}`).toBe(false)
      const back: Buffer[] = []
      for (let at = 0; at < stored.length; at += size) back.push(opener.write(stored.subarray(at, at + size)))
      expect(Buffer.concat([...back, opener.end()]).equals(bytes)).toBe(true)
    }
  })

  test('at any moment no half of a secret has gone on, and ordinary text is not held', () => {
    const sealer = new StreamSealer(secrets)
    expect(sealer.write(Buffer.from('ready> ')).toString()).toBe('ready> ')
    for (const { name, secret } of ALL) {
      const own = new StreamSealer(secrets)
      const half = Math.ceil(Buffer.byteLength(secret) / 2)
      const before = own.write(Buffer.from(secret).subarray(0, half)).toString()
      if (name in KNOWN) expect(before, name).toBe('')
    }
  })

  test('where its middle is left out, no half of a secret stays on either side', () => {
    for (const { name, secret } of ALL.filter((each) => each.secret.length >= 24)) {
      const cut = Math.floor(secret.length / 2)
      const ends = { head: `before ${secret.slice(0, cut)}`, tail: `${secret.slice(cut)} after`, truncated: true }
      const { head, tail } = withoutHalves(ends, secrets)
      if (name in KNOWN) expect([head, tail], name).toEqual(['before ', expect.stringMatching(/^.{0,12} ?after$/s)])
      else expect(tail, name).not.toContain(secret.slice(-12))
    }
    const plain = { head: 'one two', tail: 'three four', truncated: true }
    expect(withoutHalves(plain, secrets)).toEqual(plain)
  })

  test('bytes that are no text come back as they were', () => {
    const binary = Buffer.from(Array.from({ length: 4_096 }, (_, index) => (index * 37) % 256))
    const [sealer, opener] = [new StreamSealer(secrets), new StreamOpener(secrets)]
    const stored = Buffer.concat([sealer.write(binary), sealer.end()])
    expect(Buffer.concat([opener.write(stored), opener.end()]).equals(binary)).toBe(true)
  })
})

describe('what is known', () => {
  test('variables whose names say so, and passwords in addresses; no paths, numbers or words', () => {
    const found = secretsOf({
      GITHUB_TOKEN: 'abc123def456',
      DATABASE_URL: 'postgres://me:p%40ssword@db/x',
      SSH_KEY_FILE: '/srv/keys/id',
      TLS_KEY: '/etc/tls/key.pem',
      HOLDFAST_ACTION_KEY: 'act_01a1e0ae3100712abb11',
      MAX_TOKEN: '4096000000',
      API_KEY: 'short',
      DB_PASSWORD: 'changeme',
      PWD: '/srv/project-12345',
      EDITOR_SECRET: 'true',
    })
    expect(found).toEqual({ GITHUB_TOKEN: { value: 'abc123def456' }, 'DATABASE_URL.password': { value: 'p@ssword' } })
  })

  test('what the configuration declares or refers to, whatever it is called', () => {
    const known = gatherKnown({
      environment: { ACCOUNT: 'from-the-account', OTHER: 'from-another-one' },
      declared: new Map([['billing', { env: 'ACCOUNT' }]]),
      written: { 'mcp.docs.Authorization': 'Bearer ${OTHER}', 'mcp.docs.X-Api-Key': 'written-here-1' },
      store: 'postgres://u:store-password@h/d',
    })
    expect(known.valueOf('billing')).toBe('from-the-account')
    expect(known.valueOf('OTHER')).toBe('from-another-one')
    expect(known.valueOf('mcp.docs.X-Api-Key')).toBe('written-here-1')
    expect(known.valueOf('HOLDFAST_STORE.password')).toBe('store-password')
  })
})

test('what is sealed in a file is seen wherever it is, also where the file is cut into pages in the middle of it', async () => {
  const home = newHome()
  const own = new Secrets(keyPlace(home, undefined), new KnownSecrets({ DEPLOY_TOKEN: { value: 'known-value-12' } }))
  const file = join(home, 'file')
  const sees = (text: string) => {
    writeFileSync(file, text)
    return hasSealed(file)
  }
  for (const text of [SHAPED['github']!.text, 'known-value-12']) {
    const sealed = own.seal(text)
    for (let cut = 0; cut <= sealed.length; cut += 1) {
      const cutUp = `${sealed.slice(0, cut)}\0\0\0\u0007${sealed.slice(cut)}`
      expect([cut, await sees(cutUp)]).toEqual([cut, true])
    }
    // The file is read in pieces.
    for (const before of [-12, -6, -1]) expect(await sees('x'.repeat(1024 * 1024 + before) + sealed)).toBe(true)
  }
  expect(await sees(['nothing', ...HARMLESS, own.seal('~hf:e:written by somebody')].join('\n'))).toBe(false)
})
