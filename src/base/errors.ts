/**
 * Every failure that a caller or a person can meet is a HoldfastError: a stable code (`noun/what`), a sentence that
 * says what happened, a remedy that says what to do, and whether trying again can help.
 */
export interface ErrorDetails {
  /** What the reader can do about it, as an instruction. */
  readonly remedy?: string
  /** Present when the same call may succeed later; `afterMs` is the soonest useful moment. */
  readonly retry?: { readonly afterMs: number }
  readonly cause?: unknown
}

export class HoldfastError extends Error {
  readonly code: string
  readonly remedy: string | undefined
  readonly retry: { readonly afterMs: number } | undefined

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'HoldfastError'
    this.code = code
    this.remedy = details.remedy
    this.retry = details.retry
  }
}

/** The one-line form for people: `store/newer-schema: this database was written by … ; upgrade, or open a copy`. */
export function describeError(error: unknown): string {
  if (error instanceof HoldfastError) {
    return error.remedy === undefined
      ? `${error.code}: ${error.message}`
      : // What others say ends in a full stop, and here it goes on.
        `${error.code}: ${error.message.replace(/\.$/, '')}; ${error.remedy}`
  }
  return error instanceof Error ? error.message : String(error)
}

/** The JSON form of a failure, the same on the command line and over HTTP. */
export function viewError(error: unknown) {
  if (!(error instanceof HoldfastError)) return { code: 'internal/unexpected', message: describeError(error) }
  const { code, message, remedy, retry } = error
  return { code, message, ...(remedy === undefined ? {} : { remedy }), ...(retry === undefined ? {} : { retry }) }
}

/** A condition that only a defect in Holdfast itself can break. It stays on in production. */
export function invariant(condition: unknown, what: string): asserts condition {
  if (!condition) {
    throw new HoldfastError('internal/invariant', what, { remedy: 'please report this, it is a defect' })
  }
}
