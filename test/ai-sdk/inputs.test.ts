import { generateText, isStepCount, tool } from 'ai'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { durable } from '../../src/ai-sdk/index.ts'
import { actionsOfRun } from '../../src/actions/action.ts'
import type { RunId } from '../../src/base/ids.ts'
import { defineFunction } from '../../src/index.ts'
import { engines } from '../support/engines.ts'
import { until } from '../support/holdfast.ts'
import { mock } from './mock.ts'
import type { Says } from './mock.ts'
import { ALLOWED, open } from './support.ts'

class Letter {
  readonly #text: string
  constructor(text: string) {
    this.#text = text
  }
  read = () => this.#text
}

const strings = z.array(z.string())
/** What the schemas make of it is no JSON: its JSON form is the same for all recipients. */
const FORMS = {
  set: strings.transform((names) => new Set(names)),
  map: strings.transform((names) => new Map(names.map((name) => [name, 'to']))),
}

function clerk(to: z.ZodType, script: readonly Says[], more: object = {}) {
  const sent: unknown[] = []
  const mail = tool({
    description: 'Sends a mail',
    inputSchema: z.object({ to }),
    execute: (input) => {
      sent.push(input.to)
      return 'sent'
    },
  })
  const definition = defineFunction('clerk', async () => {
    const wrapped = durable({ model: mock(script), tools: { mail } })
    return (await generateText({ ...wrapped, ...more, prompt: 'Send it.', stopWhen: isStepCount(9) })).text
  })
  return { sent, definition }
}

const mails = (...recipients: readonly unknown[]): readonly Says[] => [
  ...recipients.map((to): Says => [['mail', { to }]]),
  'That is all.',
]

async function called(definition: ReturnType<typeof clerk>['definition'], policy = ALLOWED) {
  const database = await engines[0]!.database()
  const { runtime } = await open([definition], { store: database.url, policy })
  const call = await runtime.call({ function: 'clerk' })
  const inputs = async () =>
    (await (await database.open()).read(actionsOfRun, call.runId as RunId)).map(({ input }) => input)
  return { runtime, call, inputs }
}

test.each(Object.entries(FORMS))(
  'what the schema makes a %s of is known by what the model wrote [actions/once]',
  async (_form, to) => {
    const { sent, definition } = clerk(to, mails(['a'], ['b'], ['a']))
    const { call, inputs } = await called(definition)
    expect(await call.result()).toBe('That is all.')
    expect(sent).toEqual([to.parse(['a']), to.parse(['b'])])
    expect(await inputs()).toEqual([{ to: ['a'] }, { to: ['b'] }, { to: ['a'] }])
  },
)

test('a person sees what the model wrote [approvals/bound]', async () => {
  const { sent, definition } = clerk(FORMS.set, mails(['a']))
  const { runtime, call } = await called(definition, [])
  const [request] = await until('it asks', async () => {
    const found = await runtime.approvals.list()
    return found.length === 1 ? found : undefined
  })
  expect(request).toMatchObject({ input: { to: ['a'] } })
  await runtime.approvals.approve(request!)
  expect(await call.result()).toBe('That is all.')
  expect(sent).toEqual([new Set(['a'])])
})

test('what has a JSON form of its own is known by that, as it was', async () => {
  const at = z.string().transform((text) => ({ at: new Date(text), url: new URL('https://example.org/a') }))
  const { definition } = clerk(at, mails('2026-01-01'))
  const { call, inputs } = await called(definition)
  expect(await call.result()).toBe('That is all.')
  expect(await inputs()).toEqual([{ to: { at: '2026-01-01T00:00:00.000Z', url: 'https://example.org/a' } }])
})

test.each([
  ['the program made something else of it', FORMS.set, { mail: () => ({ to: new Set(['somebody else']) }) }],
  ['nobody can say that it is the same', z.string().transform((text) => new Letter(text)), undefined],
])('what is no JSON is not used where %s [approvals/bound]', async (_why, to, refine) => {
  const { sent, definition } = clerk(to, mails(to === FORMS.set ? ['a'] : 'a'), {
    experimental_refineToolInput: refine,
  })
  const { call, inputs } = await called(definition)
  await expect(call.result()).rejects.toThrow('the input of the tool "mail" is not JSON')
  expect([sent, await inputs()]).toEqual([[], []])
})
