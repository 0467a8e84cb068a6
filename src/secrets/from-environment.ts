import { looksSecret } from './known.ts'
import type { Source } from './known.ts'

/** Names that say that the value is secret. */
const SAYS_SO =
  /(?:^|_)(?:KEY|APIKEY|TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|PASS|PWD|PASSPHRASE|CREDENTIALS?|PAT|DSN|COOKIE|SIGNATURE|AUTHORIZATION)(?:_\d+)?$|PASSWORD|SECRET|PRIVATE_KEY|API_?KEY|ACCESS_TOKEN|AUTH_TOKEN/i
/** And names that say otherwise: where it is, what it is called, who it belongs to. */
const SAYS_NOT =
  /(?:_FILE|_PATH|_DIR|_ID|_NAME|_URL|_URI|_HOST|_USER|_TYPE|_SOCK|_LENGTH|_COUNT|_TTL|_EXPIRES?)$|^(?:PWD|OLDPWD|HOLDFAST_ACTION_KEY)$/i
/** Where a file is, a number, a word: no secret, whatever the name says. */
const NO_SECRET = /^(?:~?\.{0,2}\/[\w./ -]*|[A-Za-z]:\\.*|-?\d{1,12}(?:\.\d+)?|[a-z]{1,12})$/

/** A password in an address, as that of a database or a proxy. */
const IN_ADDRESS = /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:([^\s/@]+)@/i

/** Of a variable or a header. */
export const saysSecret = (name: string): boolean => SAYS_SO.test(name.replaceAll('-', '_')) && !SAYS_NOT.test(name)

/** The secrets of an environment: variables whose names say so, and passwords in addresses. */
export function secretsOf(variables: Readonly<Record<string, string | undefined>>): Record<string, Source> {
  const found: Record<string, Source> = {}
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined || value === '') continue
    const password = passwordIn(value)
    if (password !== undefined && looksSecret(password)) found[`${name}.password`] = { value: password }
    else if (saysSecret(name) && !NO_SECRET.test(value) && looksSecret(value)) found[name] = { value }
  }
  return found
}

export function passwordIn(address: string): string | undefined {
  const written = IN_ADDRESS.exec(address)?.[1]
  if (written === undefined) return undefined
  try {
    return decodeURIComponent(written)
  } catch {
    return written
  }
}
