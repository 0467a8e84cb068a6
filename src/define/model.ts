import type { Clock } from '../base/clock.ts'
import type { LanguageModel, ModelPrice } from '../loop/ports.ts'
import { aiSdkModel } from '../model/ai-sdk-model.ts'
import type { SdkModel } from '../model/ai-sdk.ts'

/** A model of the AI SDK (LanguageModelV4), as `anthropic('claude-sonnet-5')` returns it. */
export interface AiSdkModel {
  readonly specificationVersion: string
  readonly provider: string
  readonly modelId: string
  doStream(call: never): PromiseLike<unknown>
}

export type ModelValue = LanguageModel | AiSdkModel

export function isModelValue(value: unknown): value is ModelValue {
  const model = (typeof value === 'object' && value !== null ? value : {}) as Partial<LanguageModel & AiSdkModel>
  return typeof model.generate === 'function' || typeof model.doStream === 'function'
}

/** As a configuration would name it. */
export const nameOfModel = (model: ModelValue): string =>
  'generate' in model ? model.id : `${model.provider.split('.')[0] ?? model.provider}/${model.modelId}`

/** `anthropic.messages` is the provider's name for a part of it; limits are those of the account. */
export function openModelValue(model: ModelValue, clock: Clock, price?: ModelPrice): LanguageModel {
  if ('generate' in model) return model
  const quota = model.provider.split('.')[0] ?? model.provider
  const about = { id: nameOfModel(model), quota, clock, ...(price === undefined ? {} : { price }) }
  return aiSdkModel(model as unknown as SdkModel, about)
}
