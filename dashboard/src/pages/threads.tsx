import { useState } from 'preact/hooks'

import type { ListedThread } from '../api/shapes.ts'
import { shortId, visible } from '../look/words.ts'
import { List } from '../parts/list.tsx'
import { NewThread } from '../parts/composer.tsx'
import { PageFrame } from '../parts/page.tsx'
import { Ago, Empty, State } from '../parts/small.tsx'
import { useKeys } from '../state/keys.ts'
import { usePaged } from '../state/paged.ts'
import { may } from '../state/session.ts'

export function Threads() {
  const pages = usePaged('threads.list', {}, { id: ({ id }) => id, wakes: ['thread.', 'run.', 'message.'] })
  const [isNew, setNew] = useState(false)
  useKeys('Threads', { n: ['new thread', () => setNew(true)] })
  const button = may('operate') && (
    <button type="button" class="button button-main" onClick={() => setNew(!isNew)} aria-expanded={isNew}>
      New thread
    </button>
  )
  return (
    <PageFrame title="Threads" filled side={button}>
      {isNew && <NewThread />}
      <List
        pages={pages}
        label="Threads"
        id={(thread) => thread.id}
        href={(thread) => `/threads/${thread.id}`}
        row={(thread) => <ThreadRow thread={thread} />}
        empty={<Empty title="No threads yet">A thread is one conversation with an agent. Press n to begin one.</Empty>}
      />
    </PageFrame>
  )
}

const stateOf = ({ state, run }: ListedThread) => (state === 'open' ? (run?.state ?? 'idle') : state)

const ThreadRow = ({ thread }: { readonly thread: ListedThread }) => (
  <div class="grid h-full grid-cols-[7.5rem_1fr_auto] items-center gap-x-4 px-4 md:grid-cols-[8rem_7rem_minmax(0,1fr)_8rem_5.5rem] md:px-6">
    <State state={stateOf(thread)} />
    <span class="truncate font-medium max-md:order-last max-md:hidden">{thread.agent}</span>
    <span class="truncate max-md:col-span-3 max-md:row-start-2">
      {visible((thread.preview ?? '').replaceAll(/\s+/g, ' ')) || <span class="text-quiet">nothing said yet</span>}{' '}
      <span class="text-quiet font-mono text-xs">{shortId(thread.id)}</span>
    </span>
    <span class="text-quiet truncate text-sm max-md:font-medium">
      <span class="text-ink md:hidden">{thread.agent} </span>
      {thread.pending > 0 ? `${thread.pending} in the inbox` : thread.parentId === undefined ? '' : 'a child'}
    </span>
    <span class="text-quiet text-right text-sm">
      <Ago at={thread.createdAt} />
    </span>
  </div>
)
