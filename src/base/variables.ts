type Variables = Readonly<Record<string, string | undefined>>

/** Enough to find programs and speak a language; no secrets. */
const PLAIN = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR)$/
/** Where our own things are: for what may ask `holdfast` in its turn. */
const OURS = /^HOLDFAST_(HOME|STORE|SECRET_KEY_FILE)$/

const only = (env: Variables, isMeant: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && isMeant(entry[0])),
  )

/** What a command that nobody watches gets of somebody's environment. */
export const harmlessVariables = (env: Variables) => only(env, (name) => PLAIN.test(name) || OURS.test(name))

/** What a stranger's program gets, which has no business with our store. */
export const plainVariables = (env: Variables) => only(env, (name) => PLAIN.test(name))

/** Configurations refer to variables so, and need not hold secrets themselves. */
export const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** Puts values in for `${NAME}`. */
export const withReferences = (text: string, valueOf: (name: string) => string): string =>
  text.replace(REFERENCE, (_, name: string) => valueOf(name))
