import { useState } from 'preact/hooks'

import { asProblem, call } from '../api/client.ts'
import type { Answer } from '../api/client.ts'
import type { Rule } from '../api/shapes.ts'
import { field, visible } from '../look/words.ts'
import { refreshNow, useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { attempt } from '../state/toast.ts'
import { Section, Trouble, Waiting } from './page.tsx'
import { Ago, Mark } from './small.tsx'

const MARKS = { allow: 'done', ask: 'waiting', deny: 'denied' } as const

/** The rules in force, what is wrong with them, and what a call would get. */
export function PolicyPanel() {
  const rules = useResource('policy.list', {}, ['policy.'])
  const check = useResource('policy.check', {}, ['policy.'])
  const items = rules.data.value?.items
  const problems = check.data.value?.problems ?? []
  return (
    <Section title="Policy">
      <Trouble problem={rules.problem.value} />
      {items === undefined ? (
        rules.problem.value === undefined && <Waiting rows={3} />
      ) : (
        <ul class="panel">
          {items.map((rule, index) => (
            <RuleRow key={rule.id ?? index} rule={rule} />
          ))}
          <li class="text-quiet px-3 py-2.5 text-sm">
            Where no rule matches, a read is allowed and a write asks a person.
          </li>
        </ul>
      )}
      {problems.length > 0 && (
        <ul class="border-warn bg-warn-soft mt-3 rounded-md border px-3 py-2" aria-label="What the checker says">
          {problems.map(({ text }) => (
            <li key={text}>{visible(text)}</li>
          ))}
        </ul>
      )}
      {check.data.value !== undefined && problems.length === 0 && (
        <p class="text-quiet mt-2 flex items-center gap-2 text-sm">
          <Mark state="done" /> The checker has nothing to say about these rules.
        </p>
      )}
      <Explain />
    </Section>
  )
}

function RuleRow({ rule: { id, rule, words, madeBy, madeAt } }: { readonly rule: Rule }) {
  const remove = async () => {
    if (id === undefined) return
    await attempt(
      'The rule was not removed',
      () => call('policy.remove', { rule: id }),
      'Its calls are asked for again.',
    )
    refreshNow('policy.list', 'policy.check')
  }
  return (
    <li class="row-line flex min-h-10 items-center gap-3 px-3">
      <Mark state={MARKS[rule.decision]} />
      <span class="min-w-0 flex-1 font-mono text-sm wrap-anywhere">{visible(words)}</span>
      <span class="text-quiet text-sm max-md:hidden">
        {madeBy === undefined ? 'configuration' : visible(`always, by ${madeBy}`)}{' '}
        {madeAt !== undefined && <Ago at={madeAt} />}
      </span>
      {id !== undefined && may('approve') && (
        <button type="button" class="button button-bad" onClick={() => void remove()}>
          Take back
        </button>
      )}
    </li>
  )
}

/** What would a call get, and why? */
function Explain() {
  const agents = useResource('agents.list', {}).data.value?.items ?? []
  const [answer, setAnswer] = useState<Answer<'policy.explain'> | string>('')
  const ask = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const input = field(form, 'input')
    try {
      const given = input === '' ? {} : { input: JSON.parse(input) as unknown }
      setAnswer(await call('policy.explain', { agent: field(form, 'agent'), tool: field(form, 'tool'), ...given }))
    } catch (error) {
      setAnswer(error instanceof SyntaxError ? 'The input is not JSON.' : asProblem(error).message)
    }
  }
  return (
    <form class="panel mt-3 grid gap-2 p-3 sm:grid-cols-[10rem_12rem_1fr_auto]" onSubmit={(event) => void ask(event)}>
      <select class="field" name="agent" aria-label="Agent">
        {agents.map(({ name }) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <input class="field font-mono" name="tool" required placeholder="tool" aria-label="Tool" />
      <input class="field font-mono" name="input" placeholder={'{ "path": "src/a.ts" }'} aria-label="Input as JSON" />
      <button class="button">What would it get?</button>
      <output class="min-h-6 sm:col-span-4">
        {typeof answer === 'string' ? answer : <Explained answer={answer} />}
      </output>
    </form>
  )
}

const Explained = ({ answer: { decision, by, via, remarks } }: { readonly answer: Answer<'policy.explain'> }) => (
  <span class="flex flex-wrap items-center gap-2">
    <Mark state={MARKS[decision]} />
    <strong>{decision}</strong>
    <span class="text-quiet">
      {by} ({via})
    </span>
    {remarks.map((remark) => (
      <span key={remark} class="text-warn">
        {remark}
      </span>
    ))}
  </span>
)
