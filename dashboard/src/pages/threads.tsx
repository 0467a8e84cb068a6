import { useState } from 'preact/hooks'

import type { ListedThread } from '../api/shapes.ts'
import { shownThread } from '../look/states.ts'
import { shortId, threadPath, visible } from '../look/words.ts'
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
        href={(thread) => threadPath(thread.id)}
        head={HEAD}
        row={(thread) => <ThreadRow thread={thread} />}
        empty={<Empty title="No threads yet">A thread is one conversation with an agent. Press n to begin one.</Empty>}
      />
    </PageFrame>
  )
}

const COLUMNS =
  'grid h-full items-center gap-x-4 px-4 md:px-6 grid-cols-[1fr_auto] md:grid-cols-[8rem_8rem_minmax(0,1fr)_8rem_7rem_5.5rem]'

const HEAD = (
  <div class={COLUMNS}>
    <span>State</span>
    <span>Agent</span>
    <span>Began with</span>
    <span>Inbox</span>
    <span>Thread</span>
  </div>
)

const inboxOf = ({ pending, parentId }: ListedThread) =>
  pending > 0 ? `${pending} waiting` : parentId === undefined ? '' : 'a child'

const ThreadRow = ({ thread }: { readonly thread: ListedThread }) => (
  <div class={`${COLUMNS} max-md:content-center`}>
    <span class="flex min-w-0 gap-3">
      <State state={shownThread(thread)} />
      <span class="truncate font-medium md:hidden">{visible(thread.agent)}</span>
    </span>
    <span class="truncate font-medium max-md:hidden">{visible(thread.agent)}</span>
    <span class="truncate max-md:col-span-2 max-md:row-start-2">
      {visible((thread.preview ?? '').replaceAll(/\s+/g, ' ')) || <span class="text-quiet">no message yet</span>}
    </span>
    <span class="text-quiet truncate text-sm max-md:hidden">{inboxOf(thread)}</span>
    <span class="text-quiet truncate font-mono text-xs max-md:hidden" title={visible(thread.id)}>
      {visible(shortId(thread.id))}
    </span>
    <span class="text-quiet text-right text-sm max-md:col-start-2 max-md:row-start-1">
      <Ago at={thread.createdAt} />
    </span>
  </div>
)
