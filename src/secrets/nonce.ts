let nonce: string | undefined

/** Of this process, and told to nobody: what it could not put back is known by it. */
const ownNonce = (): string => (nonce ??= process.getBuiltinModule('node:crypto').randomBytes(12).toString('hex'))

/** Why a value is not there: nobody here knows what it is called by, or has the key that it was sealed under. */
export type Why = 'name' | 'key'

let marked = false

export function unresolved(why: Why, body: string): string {
  marked = true
  return `~hf?${ownNonce()}:${why}:${body}~`
}

/** Two groups: why, and what was stored. */
export const unresolvedIn = (): RegExp => new RegExp(`~hf\\?${ownNonce()}:(name|key):([^~]*)~`, 'g')

/** As long as this process has put everything back, nothing can be in a text. */
export const isAnyUnresolved = (): boolean => marked

export const mayBeUnresolved = (text: string): boolean => marked && text.includes('~hf?')
