import { HoldfastError } from '../../base/errors.ts'

type Variables = Readonly<Record<string, string | undefined>>

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** Puts variables of this process in for `${NAME}`, so that secrets need not be in the configuration. */
export function withVariables(
  where: string,
  values: Readonly<Record<string, string>>,
  variables: Variables,
): Record<string, string> {
  const filled = Object.entries(values).map(([key, value]) => [
    key,
    value.replace(REFERENCE, (_, name: string) => variables[name] ?? missing(`${where}.${key}`, name)),
  ])
  return Object.fromEntries(filled) as Record<string, string>
}

function missing(where: string, name: string): never {
  throw new HoldfastError('usage/config', `"${where}" needs the variable ${name}, which is not set`, {
    remedy: `set ${name} in the environment of this process`,
  })
}

/** Enough to find programs and speak a language: what a server needs beyond that its configuration gives it. */
const HARMLESS = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR)$/

export function harmlessVariables(variables: Variables): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => {
      return entry[1] !== undefined && HARMLESS.test(entry[0])
    }),
  )
}
