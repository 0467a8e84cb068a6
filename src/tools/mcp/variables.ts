import { HoldfastError } from '../../base/errors.ts'
import { withReferences } from '../../base/variables.ts'

type Variables = Readonly<Record<string, string | undefined>>

/** Puts variables of this process in for `${NAME}`, so that secrets need not be in the configuration. */
export function withVariables(
  where: string,
  values: Readonly<Record<string, string>>,
  variables: Variables,
): Record<string, string> {
  const filled = Object.entries(values).map(([key, value]) => [
    key,
    withReferences(value, (name) => variables[name] ?? missing(`${where}.${key}`, name)),
  ])
  return Object.fromEntries(filled) as Record<string, string>
}

function missing(where: string, name: string): never {
  throw new HoldfastError('usage/config', `"${where}" needs the variable ${name}, which is not set`, {
    remedy: `set ${name} in the environment of this process`,
  })
}
