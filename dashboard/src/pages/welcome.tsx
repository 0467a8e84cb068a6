import { useState } from 'preact/hooks'

import { call } from '../api/client.ts'
import { threadPath } from '../look/words.ts'
import { PageFrame } from '../parts/page.tsx'
import { Composer } from '../parts/composer.tsx'
import { useResource } from '../state/resource.ts'
import { go } from '../state/router.ts'
import { may } from '../state/session.ts'
import { attempt } from '../state/toast.ts'

const COMMANDS: readonly (readonly [string, string])[] = [
  ['holdfast hooks install claude', 'sessions of Claude Code report here, and get their messages'],
  ['claude', 'work as always: each turn is an observed run'],
  ['holdfast threads list', 'your session is a thread; send it a message from anywhere'],
]

const TOUR: readonly (readonly [string, string])[] = [
  [
    'Every write once',
    'A write is recorded before it starts. Kill the daemon in the middle: the next one finds out what happened.',
  ],
  ['A person decides', 'What no rule allows waits under Approvals, with the exact bytes.'],
  ['Nothing is lost', 'Messages, results and reasons are kept, whoever died in between.'],
]

/** The first start: something to see within ten seconds, and how to connect what one has. */
export function Welcome() {
  const agents = useResource('agents.list', {}).data.value?.items
  const [busy, setBusy] = useState(false)
  const agent = agents?.[0]?.name
  const run = async () => {
    if (agent === undefined) return
    setBusy(true)
    await attempt('The demo did not start', async () => {
      const { threadId } = await call('messages.send', { agent, text: 'Write down that the boat is at pier 7.' })
      go(threadPath(threadId))
    })
    setBusy(false)
  }
  return (
    <PageFrame title="Welcome">
      <div class="mx-auto grid max-w-4xl gap-8 py-4">
        <section class="panel p-6">
          <h2 class="text-lg font-semibold">See it work</h2>
          {agent === undefined ? (
            <p class="text-quiet mt-1">
              No agent is in the configuration. Add one to <code class="font-mono">holdfast.config.json</code> and start
              again, or connect Claude Code below.
            </p>
          ) : (
            <>
              <p class="text-quiet mt-1 mb-4">
                <strong class="text-ink">{agent}</strong> is ready. It gets a message, writes one line, and tells you
                how it went. You see every step.
              </p>
              <button
                type="button"
                id="run-demo"
                class="button button-main"
                disabled={busy || !may('operate')}
                onClick={() => void run()}
              >
                Run {agent}
              </button>
            </>
          )}
        </section>
        <Connect />
        {agent !== undefined && may('operate') && (
          <Composer
            to={{ agent }}
            placeholder={`Or write to ${agent} yourself`}
            onSent={(threadId) => go(threadPath(threadId))}
          />
        )}
      </div>
    </PageFrame>
  )
}

const Connect = () => (
  <>
    <section>
      <h2 class="mb-3 text-lg font-semibold">Connect Claude Code</h2>
      <ol class="grid gap-2">
        {COMMANDS.map(([command, means], index) => (
          <li key={command} class="panel flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3">
            <span class="bg-accent-soft text-accent grid size-6 place-items-center rounded-full text-sm font-semibold">
              {index + 1}
            </span>
            <code class="font-mono font-semibold">{command}</code>
            <span class="text-quiet">{means}</span>
          </li>
        ))}
      </ol>
    </section>
    <section class="grid gap-4 sm:grid-cols-3">
      {TOUR.map(([title, text]) => (
        <div key={title}>
          <h3 class="font-semibold">{title}</h3>
          <p class="text-quiet mt-1">{text}</p>
        </div>
      ))}
    </section>
  </>
)
