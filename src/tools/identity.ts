/**
 * The arguments by which two calls are the same action; without names all of them. One that is left out is the same as in another
 * call that leaves it out, not as one that says null.
 */
export function identityOf(input: unknown, names: readonly string[] | undefined): unknown {
  if (names === undefined || typeof input !== 'object' || input === null) return input
  return Object.fromEntries(Object.entries(input).filter(([name]) => names.includes(name)))
}
