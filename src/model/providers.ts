import { resolve } from 'node:path'

import { systemClock } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { loadOptional } from '../base/optional-package.ts'
import type { LanguageModel, ModelPrice } from '../loop/ports.ts'
import { aiSdkModel } from './ai-sdk-model.ts'
import type { SdkModel } from './ai-sdk.ts'
import { ModelError } from './model-error.ts'
import { scriptedModel } from './scripted.ts'

/** Providers of the AI SDK: optional packages, loaded when a model of theirs is first opened. */
const PROVIDERS = {
  anthropic: { package: '@ai-sdk/anthropic', create: 'createAnthropic', version: 4, key: 'ANTHROPIC_API_KEY' },
  openai: { package: '@ai-sdk/openai', create: 'createOpenAI', version: 4, key: 'OPENAI_API_KEY' },
  'openai-compatible': {
    package: '@ai-sdk/openai-compatible',
    create: 'createOpenAICompatible',
    version: 3,
    key: undefined,
  },
} as const
type ProviderName = keyof typeof PROVIDERS

/** What has to be there for a model of this name: a package, and the variable that holds a key. Undefined: nothing. */
export function needsOf(id: string): { readonly package: string; readonly key: string | undefined } | undefined {
  if (id.startsWith('scripted:')) return undefined
  const { package: name, version, key } = PROVIDERS[readId(id).provider]
  return { package: `${name}@${version}`, key }
}

/** What a provider is told; the rest it takes from its own environment variables. */
export interface ProviderSettings {
  readonly baseURL?: string
  readonly apiKey?: string
}

export interface OpenModelOptions extends ProviderSettings {
  readonly clock?: Clock
  readonly price?: ModelPrice
}

interface Named {
  readonly provider: ProviderName
  readonly model: string
  /** The account: a limit of one model is taken for one of all, which costs a little patience and never a ban. */
  readonly quota: string
  readonly baseURL?: string
}

/** Opens what a configuration names: `scripted:PATH`, `anthropic/…`, `openai/…`, `openai-compatible:URL/model`. */
export async function openModel(id: string, folder: string, options: OpenModelOptions = {}): Promise<LanguageModel> {
  const { clock = systemClock, price, ...settings } = options
  const path = /^scripted:(.+)$/.exec(id)?.[1]
  if (path !== undefined) return scriptedModel(resolve(folder, path), { id, clock })
  const { provider, model, quota, ...address } = readId(id)
  const create = await loadProvider(provider, folder)
  // Such a server tells the cost of a stream only when it is asked to.
  const compatible = provider === 'openai-compatible' ? { name: quota, includeUsage: true } : {}
  return aiSdkModel(create({ ...compatible, ...settings, ...address })(model), {
    id,
    quota,
    clock,
    ...(price === undefined ? {} : { price }),
  })
}

function readId(id: string): Named {
  const [, provider, model] = /^(anthropic|openai)\/(.+)$/.exec(id) ?? []
  if (model !== undefined) return { provider: provider as ProviderName, model, quota: provider as ProviderName }
  // A model's name may have slashes of its own; then the address is known by its version, as in https://host/v1/org/name.
  const address = /^openai-compatible:(https?:\/\/.+?\/v\d+\w*|https?:\/\/.+)\/(.+)$/.exec(id)
  const [, baseURL, compatible] = address ?? []
  if (baseURL === undefined || compatible === undefined) throw unknownModel(id)
  return { provider: 'openai-compatible', model: compatible, quota: `openai-compatible:${baseURL}`, baseURL }
}

const unknownModel = (id: string) =>
  new ModelError('model/no-provider', `"${id}" names no model that is known here`, {
    remedy: 'write scripted:PATH, anthropic/MODEL, openai/MODEL or openai-compatible:URL/MODEL',
  })

type Create = (settings: Readonly<Record<string, unknown>>) => (model: string) => SdkModel

async function loadProvider(provider: ProviderName, folder: string): Promise<Create> {
  const { package: name, create } = PROVIDERS[provider]
  const found = (await loadOptional(name, folder))?.[create]
  if (typeof found === 'function') return found as Create
  const { version } = PROVIDERS[provider]
  throw new ModelError('model/no-provider', `models of ${provider} need the package ${name}, which is not installed`, {
    remedy: `npm install ${name}@${version}`,
  })
}
