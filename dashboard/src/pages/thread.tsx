import { useLayoutEffect, useRef } from 'preact/hooks'

import { call } from '../api/client.ts'
import type { Run, WholeThread } from '../api/shapes.ts'
import { conversationOf } from '../look/conversation.ts'
import type { ConversationItem } from '../look/conversation.ts'
import { isCall, outcome } from '../look/runs.ts'
import { isActive, shownRun, shownThread } from '../look/states.ts'
import { many, money, shortId, visible } from '../look/words.ts'
import { ActionCard } from '../parts/action-card.tsx'
import { Composer } from '../parts/composer.tsx'
import { PageFrame, Unread } from '../parts/page.tsx'
import { Ago, Empty, Fact, Lasted, Mark, Seen, State, ThreadLink } from '../parts/small.tsx'
import { Tree } from '../parts/tree.tsx'
import { useKeys } from '../state/keys.ts'
import { said } from '../state/live.ts'
import { refreshNow, useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { attempt } from '../state/toast.ts'

export function ThreadPage({ id }: { readonly id: string }) {
  const { data, problem } = useResource('threads.show', { thread: id }, [id])
  const thread = data.value
  const up = ['/threads', 'threads'] as const
  if (thread === undefined) return <Unread title="Thread" up={up} problem={problem.value} />
  const title = (
    <span class="flex items-center gap-3">
      <span class="truncate">{visible(thread.agent)}</span>
      <State state={shownThread(thread)} />
    </span>
  )
  return (
    <PageFrame title={title} up={up} filled side={<Controls thread={thread} />}>
      <div class="flex min-h-0 flex-1">
        <div class="flex min-h-0 min-w-0 flex-1 flex-col">
          <details class="border-line max-h-1/2 shrink-0 overflow-y-auto border-b lg:hidden">
            <summary class="text-quiet px-4 py-1.5 text-sm md:px-6">
              About this thread
              {thread.children.length > 0 ? `, and ${many(thread.children.length, 'child', 'children')}` : ''} …
            </summary>
            <div class="px-4 pb-3 md:px-6">
              <About thread={thread} />
            </div>
          </details>
          <Conversation thread={thread} />
          {may('operate') && (
            <Composer to={{ threadId: id }} {...readerOf(thread)} onSent={() => refreshNow('threads.show')} />
          )}
        </div>
        <Rail thread={thread} />
      </div>
    </PageFrame>
  )
}

/** Where a message would be read: a function reads what is sent to it when it asks its model, and after its end nothing. */
function readerOf({ agent, state, runs }: WholeThread): { readonly placeholder: string; readonly disabled: boolean } {
  const name = visible(agent)
  if (state === 'removed') return { placeholder: 'This thread is removed', disabled: true }
  if (!runs.some(isCall)) return { placeholder: `Message to ${name}`, disabled: false }
  if (runs.some((run) => isCall(run) && isActive(run)))
    return { placeholder: `Message to ${name}, for the next question to its model`, disabled: false }
  return { placeholder: `${name} is a function: without a call under way it reads no messages`, disabled: true }
}

function Controls({ thread }: { readonly thread: WholeThread }) {
  const { id, state } = thread
  const stop = () =>
    attempt(
      'The thread was not stopped',
      () => call('threads.stop', { thread: id }),
      'Stopped: it takes no turn until somebody writes to it.',
    )
  const resume = () =>
    attempt('The thread was not resumed', () => call('threads.resume', { thread: id }), 'It takes turns again.')
  const act = async (what: () => Promise<boolean>) => {
    await what()
    refreshNow('threads.show')
  }
  useKeys('This thread', {
    '.': [state === 'stopped' ? 'resume it' : 'stop it', () => void act(state === 'stopped' ? resume : stop)],
  })
  if (!may('operate') || state === 'removed') return null
  return state === 'stopped' ? (
    <button type="button" class="button" onClick={() => void act(resume)}>
      Resume
    </button>
  ) : (
    <button type="button" class="button" onClick={() => void act(stop)}>
      Stop
    </button>
  )
}

/** Follows what is said as long as one is at the end of it. */
function Conversation({ thread }: { readonly thread: WholeThread }) {
  const box = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  const items = conversationOf(thread, said.value)
  useLayoutEffect(() => {
    if (atEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight
  })
  const look = () => {
    const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = box.current ?? {}
    atEnd.current = scrollTop + clientHeight > scrollHeight - 60
  }
  return (
    <div
      ref={box}
      class="min-h-0 flex-1 overflow-y-auto px-4 py-5 md:px-6"
      onScroll={look}
      tabIndex={0}
      aria-label="Conversation"
      role="region"
    >
      {items.length === 0 && <Empty title="Nothing was said yet" />}
      <ol id="conversation" class="mx-auto grid max-w-3xl gap-3">
        {items.map((item) => (
          <li key={item.key} class="min-w-0">
            <Item item={item} />
          </li>
        ))}
      </ol>
    </div>
  )
}

function Item({ item }: { readonly item: ConversationItem }) {
  switch (item.kind) {
    case 'user':
      return <UserSaid {...item} />
    case 'reply':
      return (
        <div class="reply">
          <Words text={item.text} />
        </div>
      )
    case 'live':
      return (
        <div class={`reply ${item.cut ? 'text-quiet' : 'live'}`}>
          <Words text={item.text} />
          {item.cut ? (
            <span class="text-sm">cut off</span>
          ) : (
            <span class="bg-accent breathe ml-1 inline-block h-4 w-1.5 align-text-bottom" />
          )}
        </div>
      )
    case 'note':
      return (
        <p class="text-quiet border-line border-l-2 pl-3 text-sm whitespace-pre-wrap">
          <Seen text={item.text} />
        </p>
      )
    case 'action':
      return <ActionCard action={item.action} />
    case 'run':
      return <RunLine run={item.run} silent={item.silent} />
  }
}

const UserSaid = ({ text, note, from }: Extract<ConversationItem, { kind: 'user' }>) => (
  <div class="user ml-auto w-fit max-w-[85%]">
    {from !== undefined && <p class="text-quiet mb-0.5 text-right text-xs">{visible(from)}</p>}
    <div
      class={`rounded-xl rounded-br-sm px-3.5 py-2 ${from === undefined ? 'bg-accent-soft' : 'bg-raised border-line border'}`}
    >
      <Words text={text} />
    </div>
    {note !== undefined && <p class="text-quiet mt-0.5 text-right text-xs">{visible(note)}</p>}
  </div>
)

const Words = ({ text }: { readonly text: string }) => (
  <span class="text wrap-anywhere whitespace-pre-wrap">
    <Seen text={text} />
  </span>
)

function RunLine({ run, silent }: { readonly run: Run; readonly silent: boolean }) {
  const cancel = () => attempt('The run was not cancelled', () => call('runs.cancel', { run: run.id }))
  const note = run.state === 'parked' ? run.parkedFor : run.code
  // What came of a function that said nothing, or of a command.
  const result = silent && run.state === 'succeeded' ? outcome(run) : ''
  return (
    <div
      class="run border-line text-quiet flex min-h-9 items-center gap-3 border-b pb-2 text-sm"
      data-state={run.state}
    >
      <State state={shownRun(run)} note={note} />
      {result !== '' && <span class="text-ink min-w-0 truncate">{result}</span>}
      {run.error !== undefined && (
        <span class="text-bad min-w-0 truncate" title={visible(run.error)}>
          {visible(run.error)}
        </span>
      )}
      <span class="ml-auto flex shrink-0 items-center gap-3">
        <Lasted from={run.startedAt ?? run.createdAt} to={run.endedAt} />
        <span class="max-md:hidden">{money(run.usage.costUsd)}</span>
        <a class="link" href={`/runs/${run.id}`}>
          Run
        </a>
        {isActive(run) && run.cancelRequestedAt === undefined && may('operate') && (
          <button type="button" class="cancel text-bad font-medium" onClick={() => void cancel()}>
            Cancel
          </button>
        )}
      </span>
    </div>
  )
}

const Rail = ({ thread }: { readonly thread: WholeThread }) => (
  <aside class="border-line w-72 shrink-0 overflow-y-auto border-l p-4 max-lg:hidden" aria-label="About this thread">
    <About thread={thread} />
  </aside>
)

/** What belongs to the thread beside what was said. */
function About({ thread }: { readonly thread: WholeThread }) {
  const cost = thread.runs.reduce((sum, { usage }) => sum + usage.costUsd, 0)
  const waiting = thread.messages.filter(({ state }) => state === 'pending').length
  return (
    <>
      <dl class="mb-6 grid grid-cols-2 gap-3">
        <Fact name="Began">
          <Ago at={thread.createdAt} />
        </Fact>
        <Fact name="Cost">{money(cost)}</Fact>
        <Fact name="Runs">{thread.runs.length}</Fact>
        <Fact name="In the inbox">{waiting}</Fact>
        {thread.parentId !== undefined && (
          <Fact name="Parent">
            <ThreadLink id={thread.parentId} />
          </Fact>
        )}
        {thread.session !== undefined && (
          <Fact name="Session">{`${thread.session.client}, ${thread.session.state}`}</Fact>
        )}
      </dl>
      <h2 class="text-quiet mb-1">Children</h2>
      {thread.children.length === 0 ? (
        <p class="text-quiet mb-6 text-sm">It started no other thread.</p>
      ) : (
        <ul class="mb-6">
          <Tree branch={thread} here={thread.id} />
        </ul>
      )}
      <h2 class="text-quiet mb-1">Runs</h2>
      <ul>
        {thread.runs.slice(0, 50).map((run) => (
          <li key={run.id}>
            <a class="hover:bg-hover flex h-8 items-center gap-2 rounded px-1.5" href={`/runs/${run.id}`}>
              <Mark state={shownRun(run)} />
              <span class="font-mono text-xs">{shortId(run.id)}</span>
              <span class="text-quiet ml-auto text-xs">
                <Ago at={run.createdAt} />
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  )
}
