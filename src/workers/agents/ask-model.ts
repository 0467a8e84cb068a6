import { describeError } from '../../base/errors.ts'
import type { Config } from '../../config/config.ts'
import { nameOfModel, openModelValue } from '../../define/model.ts'
import type { ModelValue } from '../../define/model.ts'
import type { RunLimits } from '../../loop/limits.ts'
import type { AskModel, LanguageModel } from '../../loop/ports.ts'
import { callModel } from '../../model/call-model.ts'
import type { ModelPorts } from '../../model/call-model.ts'
import { isTooLong } from '../../model/model-error.ts'
import { priceOf } from '../../model/prices.ts'
import { openModel } from '../../model/providers.ts'
import { NO_USAGE } from '../../loop/usage.ts'
import { withNames } from '../../secrets/redact.ts'

interface Named {
  readonly model: string | ModelValue
  readonly limits?: Partial<RunLimits>
}

/** Asks an agent's model, patiently. It is opened at its first call, so that a missing provider stops only its own agent. */
export function askModel(agent: Named, config: Config & { readonly folder: string }, ports: ModelPorts): AskModel {
  let model: LanguageModel | undefined
  return async (request, options) => {
    try {
      model ??= await open(agent, config, ports)
    } catch (error) {
      return { kind: 'failed', code: 'model', error: describeError(error), spent: NO_USAGE }
    }
    // What cannot be put back here is named to the model: a conversation goes on without it.
    const asked = await callModel(ports, model, withNames(request), options)
    if (asked.kind !== 'failed') return asked
    return { ...asked, error: describeError(asked.error), tooLong: isTooLong(asked.error) }
  }
}

async function open(agent: Named, config: Config & { readonly folder: string }, ports: ModelPorts) {
  const { model: named, limits } = agent
  const { clock, warn } = ports
  const id = typeof named === 'string' ? named : nameOfModel(named)
  const price = priceOf(id, config.prices)
  const bringsItsOwn = typeof named === 'string' ? id.startsWith('scripted:') : 'generate' in named
  if (price === undefined && !bringsItsOwn) warn(unpriced(id, limits?.costMicrousd !== undefined))
  if (typeof named !== 'string') return openModelValue(named, clock, price)
  return openModel(named, config.folder, { clock, ...(price === undefined ? {} : { price }) })
}

function unpriced(id: string, limited: boolean): string {
  const consequence = limited
    ? 'so its limit on money has no effect and its cost counts as 0'
    : 'so its cost counts as 0'
  return `the price of ${id} is not known, ${consequence}; write "prices": { "${id}": { "input": …, "output": … } } into the configuration`
}
