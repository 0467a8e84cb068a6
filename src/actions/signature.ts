import { digestOf } from '../base/canonical-json.ts'

/** SHA-256 of the canonical form of tool and identity: two calls with the same one are the same action. */
export const signatureOf = (tool: string, identity: unknown): string => digestOf({ tool, identity: identity ?? null })
