import type { ToldCall, ToldStep } from '../actions/told.ts'
import { plain } from './turn.ts'

const LONGEST_NAME = 200

interface OpenCall {
  readonly id: string
  readonly tool: string
  readonly effect: 'read' | 'write'
  readonly input: unknown
  end?: Pick<ToldCall, 'state' | 'result' | 'error'>
}

interface OpenStep {
  readonly name: string | undefined
  text: string
  readonly calls: OpenCall[]
}

/** Gathers what a client tells of its turn, piece by piece, into steps: what the model said, and what it then had done. */
export class Steps {
  readonly #steps: OpenStep[] = []
  readonly #calls = new Map<string, OpenCall>()

  /** Words of the model; of the same reply, if it has a name, or if nothing was called since. */
  say(text: string, name?: string): void {
    if (text !== '') this.#step(name).text += text
  }

  call({ id, tool, effect, input }: Omit<OpenCall, 'end'>, name?: string): void {
    if (this.#calls.has(id)) return
    const open: OpenCall = { id: plain(id, LONGEST_NAME), tool: plain(tool, LONGEST_NAME), effect, input }
    this.#calls.set(id, open)
    const last = this.#steps.at(-1)
    const step = name === undefined && last !== undefined ? last : this.#step(name)
    step.calls.push(open)
  }

  end(id: string, end: NonNullable<OpenCall['end']>): void {
    const call = this.#calls.get(id)
    if (call !== undefined) call.end = end
  }

  /** A reply without a name ends where its calls have been answered: what is said after that is the next one. */
  #step(name: string | undefined): OpenStep {
    const last = this.#steps.at(-1)
    const goesOn = name === undefined ? last?.calls.length === 0 : last?.name === name
    if (last !== undefined && goesOn) return last
    const step: OpenStep = { name, text: '', calls: [] }
    this.#steps.push(step)
    return step
  }

  /** The last words, if it ended with words. */
  get lastWords(): string | undefined {
    const last = this.#steps.at(-1)
    return last === undefined || last.calls.length > 0 ? undefined : last.text
  }

  /** All of them but the last words, which are the reply. A call whose end was not told is open. */
  all(): ToldStep[] {
    const steps = this.lastWords === undefined ? this.#steps : this.#steps.slice(0, -1)
    return steps.map(({ text, calls }) => ({
      text,
      calls: calls.map(({ end, ...call }) => ({ ...call, ...(end ?? { state: 'open' as const }) })),
    }))
  }
}
