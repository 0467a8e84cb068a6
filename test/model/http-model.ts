import type { Clock } from '../../src/base/clock.ts'
import type { LanguageModel, ModelCallOptions, ModelReply, ModelUsage } from '../../src/loop/ports.ts'
import { errorOfResponse, ModelError } from '../../src/model/model-error.ts'

interface Event {
  readonly type: string
  readonly message?: { readonly usage: { readonly input_tokens: number } }
  readonly delta?: { readonly text?: string }
  readonly usage?: { readonly output_tokens: number }
  readonly error?: { readonly type: string; readonly message: string }
}

/** The smallest adapter to a provider over HTTP: as much of Anthropic's events as the tests need. */
export function httpModel(url: string, clock: Clock): LanguageModel {
  return {
    id: 'http/test',
    quota: 'http',
    async generate(_request, options) {
      const response = await fetch(`${url}/messages`, { method: 'POST', body: '{}', signal: options.signal }).catch(
        (cause: unknown) => Promise.reject(new ModelError('model/connection', 'no connection', { cause })),
      )
      const { status, headers } = response
      if (!response.ok) throw errorOfResponse({ status, headers, message: await response.text() }, clock.now())
      return listen(response, options, clock)
    },
  }
}

async function listen(response: Response, options: ModelCallOptions, clock: Clock): Promise<ModelReply> {
  let [text, finished] = ['', false]
  let usage: ModelUsage = { inputTokens: 0, outputTokens: 0, costMicrousd: 0 }
  try {
    for await (const event of eventsOf(response)) {
      if (event.error !== undefined) {
        throw errorOfResponse({ status: 529, headers: {}, message: event.error.message }, clock.now(), { usage })
      }
      usage = {
        inputTokens: event.message?.usage.input_tokens ?? usage.inputTokens,
        outputTokens: event.usage?.output_tokens ?? usage.outputTokens,
        costMicrousd: 0,
      }
      if (event.delta?.text !== undefined) options.onText?.(event.delta.text)
      text += event.delta?.text ?? ''
      finished ||= event.type === 'message_stop'
    }
  } catch (cause) {
    throw cause instanceof ModelError ? cause : new ModelError('model/connection', 'it broke off', { usage, cause })
  }
  if (!finished) throw new ModelError('model/connection', 'the answer was cut off', { usage })
  return { text, toolCalls: [], usage, finish: 'stop' }
}

async function* eventsOf(response: Response): AsyncGenerator<Event> {
  let rest = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + chunk).split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) yield JSON.parse(/^data: (.*)$/m.exec(part)?.[1] ?? '') as Event
  }
}
