/** Enough to find programs and speak a language; no secrets. */
const HARMLESS =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|HOLDFAST_HOME|HOLDFAST_STORE|HOLDFAST_SECRET_KEY_FILE)$/

/** What a command that nobody watches gets of somebody's environment. */
export function harmlessVariables(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && HARMLESS.test(entry[0])),
  )
}
