import { createHash } from 'node:crypto'

/** Made here, so that no scanner of repositories takes them for real ones. */
const letters = (seed: string, length: number): string =>
  Array.from({ length: Math.ceil(length / 40) }, (_, index) =>
    createHash('sha256')
      .update(`${seed}${index}`)
      .digest('base64')
      .replace(/[^A-Za-z0-9]/g, 'x')
      .slice(0, 40),
  )
    .join('')
    .slice(0, length)

const digits = (seed: string, length: number) => createHash('sha512').update(seed).digest('hex').slice(0, length)

const pem = (kind: string, seed: string): string => {
  const lines = Array.from({ length: 6 }, (_, index) => letters(`${seed}/${index}`, 64))
  return [`-----BEGIN ${kind}PRIVATE KEY-----`, ...lines, `-----END ${kind}PRIVATE KEY-----`].join('\n')
}

/** Part of every secret, so that a piece of one is found too. */
const core = (name: string) => letters(name, 40)

/** One of each shape, by name: the text as it would be written, and the part that nobody may find. */
export const SHAPED: Readonly<Record<string, { readonly text: string; readonly secret: string }>> = Object.fromEntries(
  Object.entries({
    anthropic: (c: string) => [`sk-ant-api03-${c}`],
    openai: (c: string) => [`sk-proj-${c}7`],
    github: (c: string) => [`ghp_${c.slice(0, 36)}`],
    githubFine: (c: string) => [`github_pat_${c.slice(0, 22)}_${c}`],
    gitlab: (c: string) => [`glpat-${c.slice(0, 20)}`],
    slack: (c: string) => [`xoxb-${c.slice(0, 12)}-${c.slice(12, 36)}`],
    google: (c: string) => [`AIza${c.slice(0, 35)}`],
    stripe: (c: string) => [`sk_live_${c.slice(0, 24)}`],
    npm: (c: string) => [`npm_${c.slice(0, 36)}`],
    jwt: (c: string) => [`eyJ${c}.eyJ${c}.${c}`],
    pem: (c: string) => [pem('RSA ', c)],
    password: (c: string) => [`password=${c.slice(0, 12)}9!`, `${c.slice(0, 12)}9!`],
    apiKey: (c: string) => [`"api_key": "${c.slice(0, 24)}1"`, `${c.slice(0, 24)}1`],
    bearer: (c: string) => [`Authorization: Bearer ${c}1`, `${c}1`],
    address: (c: string) => [`postgres://user:${c.slice(0, 14)}@db.example/x`, c.slice(0, 14)],
  }).map(([name, make]) => {
    const [text = '', secret = text] = make(core(name))
    return [name, { text, secret }]
  }),
)

/** Values that somebody told us about: with everything that text can have in it. */
export const KNOWN: Readonly<Record<string, string>> = {
  PLAIN_TOKEN: core('plain'),
  QUOTED_PASSWORD: `"quo'ted\\${core('quoted').slice(0, 10)}"`,
  LINES_SECRET: `first ${core('lines').slice(0, 12)}\nsecond ${core('lines').slice(12, 24)}\r\n\tthird`,
  UNICODE_SECRET: `pässwörd-${core('unicode').slice(0, 8)}-密码-🔑`,
  HEX_KEY: digits('hex', 64),
  SPACED_PASSPHRASE: `correct horse ${core('spaced').slice(0, 8)} battery staple`,
  PEM_PRIVATE_KEY: pem('', 'known'),
  SIGNS_SECRET: `$&+,/:;=?@ ${core('signs').slice(0, 8)} %41 <b>`,
  TILDE_TOKEN: `~hf:e:00000000:${core('tilde').slice(0, 16)}~`,
  UUID_KEY: '7d3c1a52-90f4-4b6e-8a7b-3e5f9c2d1b08',
}

/** Nothing secret, and much like it. */
export const HARMLESS: readonly string[] = [
  '01JCR8Q5ZK3M9X2V7B4N6T8W0Y',
  'run_01a1e0ae3100712abb11a909ab6363a4',
  digits('sha', 64),
  digits('md5', 32),
  '7d3c1a52-90f4-4b6e-8a7b-3e5f9c2d1b09',
  'a task-list, a risk-assessment and a desk-lamp-with-a-very-long-hyphenated-name',
  'const password = readPassword(file)',
  'password: string',
  'the password must have 12 characters',
  '"secret": "${WEBHOOK_SECRET}"',
  'if (secret === undefined) return undefined',
  'see https://example.com/a:b/c@d and http://localhost:8080/',
  'Bearer authentication is used',
  'postgres://user:***@host/db',
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk',
  '"inputTokens": 1200, "token": "x"',
  '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
]
