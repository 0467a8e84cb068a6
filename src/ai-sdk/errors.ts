import { APICallError } from 'ai'

import { LIMITS } from '../base/limits.ts'
import type { KeptErrors } from '../define/own-loop.ts'
import { ModelError } from '../model/model-error.ts'

/*
 * A question that came to nothing is recorded too, and a program may go another way because of it: to another model, say. So it
 * meets the same error whenever it comes to that question again, and one of the kinds that it knows from the AI SDK.
 */

interface KeptError {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly api?: Refusal
  /** What we say of a refusal. */
  readonly told?: Pick<ModelError, 'code' | 'message'>
}

type Refusal = Pick<APICallError, 'url' | 'statusCode' | 'responseHeaders' | 'responseBody'>

export const sdkErrors: KeptErrors = {
  keep(error): KeptError {
    const refused = refusalIn(error)
    const { name, message: whole, code } = (error instanceof Error ? error : new Error(String(error))) as KeptError
    const message = clipped(whole)
    if (refused === undefined) return { name, message, ...(typeof code === 'string' ? { code } : {}) }
    const told = { code: code as ModelError['code'], message }
    return { name: refused.name, message: clipped(refused.message), api: fieldsOf(refused), told }
  },
  revive(kept) {
    const { name, message, code, api, told } = kept as KeptError
    if (api !== undefined) return refusalOf(message, api, told && new ModelError(told.code, told.message))
    if (name === 'AbortError' || name === 'TimeoutError') return new DOMException(message, name)
    return Object.assign(new Error(message), { name, ...(code === undefined ? {} : { code }) })
  },
}

/** As the program meets it now. */
export function asProgramKnows(error: unknown): unknown {
  const refused = refusalIn(error)
  return refused === undefined ? error : refusalOf(clipped(refused.message), fieldsOf(refused), error)
}

/** The provider's own answer, if it gave one. One that broke off has been passed on in part: that is another matter. */
function refusalIn(error: unknown): APICallError | undefined {
  if (!(error instanceof ModelError) || error.status === undefined) return undefined
  return APICallError.isInstance(error.cause) ? error.cause : undefined
}

/** Without the request, which is the whole conversation, and with no more of the answer than says why. */
const fieldsOf = ({ url, statusCode, responseHeaders, responseBody }: APICallError): Refusal => {
  const why = responseBody === undefined ? undefined : clipped(responseBody)
  const headers = responseHeaders === undefined ? undefined : telling(responseHeaders)
  return JSON.parse(JSON.stringify({ url, statusCode, responseHeaders: headers, responseBody: why })) as Refusal
}

/** When to come again, and by what name to ask the provider about it. Others are cookies, and whose account it is. */
const TELLING = /^(retry-after(-.*)?|(x-)?request-id|(x|anthropic)-ratelimit-.*)$/i

const telling = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (TELLING.test(name) ? [[name, value]] : [])))

const clipped = (text: string): string => text.slice(0, LIMITS.toldCharacters)

/** It has been tried again as often as helps: the AI SDK need not. */
const refusalOf = (message: string, api: Refusal, cause?: unknown): APICallError =>
  new APICallError({ message, requestBodyValues: {}, isRetryable: false, cause, ...api })
