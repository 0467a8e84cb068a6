import type { Instant } from '../base/clock.ts'
import type { ModelUsage } from '../loop/ports.ts'
import { errorOfResponse, ModelError } from './model-error.ts'
import type { ModelErrorCode } from './model-error.ts'

/** Errors of the AI SDK that are neither an answer of the provider nor a broken connection. */
const BY_NAME: ReadonlyMap<string, ModelErrorCode> = new Map(
  Object.entries({
    AI_LoadAPIKeyError: 'model/auth',
    AI_LoadSettingError: 'model/auth',
    AI_InvalidPromptError: 'model/bad-request',
    AI_InvalidArgumentError: 'model/bad-request',
    AI_UnsupportedFunctionalityError: 'model/bad-request',
    AI_NoSuchModelError: 'model/bad-request',
  } as const),
)

interface SdkError extends Error {
  readonly statusCode?: number
  readonly responseHeaders?: Readonly<Record<string, string>>
}

/** What the AI SDK throws, as a ModelError that keeps what the call had cost. */
export function errorOfSdk(error: unknown, now: Instant, usage: ModelUsage): ModelError {
  if (error instanceof ModelError) return error
  const { statusCode: status, responseHeaders: headers = {}, name, message } = asError(error)
  // An error inside a stream comes after a 200.
  if (status !== undefined && status >= 400)
    return errorOfResponse({ status, headers, message }, now, { usage, cause: error })
  return new ModelError(BY_NAME.get(name) ?? 'model/connection', message, { usage, cause: error })
}

const asError = (error: unknown): SdkError => (error instanceof Error ? error : new Error(textOf(error)))

const textOf = (error: unknown) => (typeof error === 'string' ? error : JSON.stringify(error))
