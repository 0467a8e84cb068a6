import type { FailureCode } from '../runs/run.ts'
import { plain } from './turn.ts'
import type { ClientFailure } from './turn.ts'

const LONGEST_SENTENCE = 2_000

/** What a client says of its trouble: the provider's status, a word of its own, its sentence. */
export interface Trouble {
  readonly status?: number
  readonly kind?: string
  readonly text: string
}

interface Known {
  readonly code: FailureCode
  readonly statuses: readonly number[]
  readonly words: RegExp
  /** What to do, where the client's own sentence does not say it. */
  readonly remedy: string
}

/** The first that fits. Clients wrap the provider's error in sentences of their own, so the words are looked for too. */
const KNOWN: readonly Known[] = [
  {
    code: 'auth',
    statuses: [401, 403],
    words:
      /authentication_failed|authentication_error|oauth_org_not_allowed|not logged in|\/login|401 unauthorized|403 forbidden|invalid x-api-key|api key not valid|(incorrect|invalid) api key|auth method/i,
    remedy: 'sign the client in on this machine, or let its key through with "env"',
  },
  {
    code: 'budget',
    statuses: [402],
    words:
      /billing_error|credit balance|insufficient_quota|max_budget|budget_exhausted|maximum budget|max_turns|maximum number of turns/i,
    remedy: 'raise the limit that it names, or send the next message to go on in the same session',
  },
  {
    code: 'model',
    statuses: [429, 529, 503],
    words: /rate.?limit|too many requests|resource_exhausted|overloaded|usage limit|quota exceeded/i,
    remedy: 'the provider asks for patience: send the message again later, the session goes on where it was',
  },
  {
    code: 'model',
    statuses: [413],
    words: /prompt_too_long|prompt is too long|context.?window|context_length_exceeded|input token count/i,
    remedy: 'its session has outgrown the model: begin a new thread',
  },
]

const OTHER: Pick<Known, 'code' | 'remedy'> = { code: 'model', remedy: '' }

export function failureOf({ status, kind = '', text }: Trouble): ClientFailure {
  const said = `${kind} ${text}`
  const byWords = KNOWN.find(({ words }) => words.test(said))
  const byStatus = KNOWN.find(({ statuses }) => status !== undefined && statuses.includes(status))
  const { code, remedy } = byStatus ?? byWords ?? OTHER
  const sentence = plain(text.trim() === '' ? kind : text.trim(), LONGEST_SENTENCE)
  return { code, error: remedy === '' ? sentence : `${sentence} (${remedy})` }
}
