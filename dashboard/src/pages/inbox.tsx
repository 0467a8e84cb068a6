import { call } from '../api/client.ts'
import type { Message } from '../api/shapes.ts'
import { asText, brief, shortId, visible } from '../look/words.ts'
import { Bytes } from '../parts/bytes.tsx'
import { Choice, List } from '../parts/list.tsx'
import { PageFrame, Unread } from '../parts/page.tsx'
import { Ago, Empty, Fact, RunLink, State, ThreadLink } from '../parts/small.tsx'
import { useKeys } from '../state/keys.ts'
import { usePaged } from '../state/paged.ts'
import { refreshNow, useResource } from '../state/resource.ts'
import { go, search } from '../state/router.ts'
import { may } from '../state/session.ts'
import { attempt } from '../state/toast.ts'

const FILTERS: readonly (readonly [string, string])[] = [
  ['', 'Not delivered'],
  ['pending,leased', 'Waiting'],
  ['consumed', 'Taken'],
  ['replaced', 'Replaced'],
]

export const Inbox = ({ id }: { readonly id?: string | undefined }) =>
  id === undefined ? <Letters /> : <Letter key={id} id={id} />

function Letters() {
  const chosen = search.value.get('state') ?? ''
  const state = (chosen === '' ? 'dead' : chosen).split(',') as Message['state'][]
  const pages = usePaged('messages.list', { state }, { id: ({ id }) => id, wakes: ['message.'] })
  return (
    <PageFrame title="Inbox" filled side={<Choice name="state" label="State" options={FILTERS} value={chosen} />}>
      <List
        pages={pages}
        label="Messages"
        id={(message) => message.id}
        href={(message) => `/inbox/${message.id}`}
        head={HEAD}
        row={(message) => <Row message={message} />}
        empty={
          chosen === '' ? (
            <Empty title="No dead letters">
              What could not be delivered is kept here, with the reason, until somebody acts on it.
            </Empty>
          ) : (
            <Empty title="No such messages" />
          )
        }
      />
    </PageFrame>
  )
}

const textOf = ({ body }: Message): string => brief(typeof body['text'] === 'string' ? body['text'] : body)

const COLUMNS =
  'grid h-full items-center gap-x-4 px-4 md:px-6 grid-cols-[1fr_auto] md:grid-cols-[9rem_7rem_minmax(0,1fr)_12rem_9rem_5.5rem]'

const HEAD = (
  <div class={COLUMNS}>
    <span>State</span>
    <span>Kind</span>
    <span>What it says</span>
    <span>Why</span>
    <span>To</span>
  </div>
)

const Row = ({ message }: { readonly message: Message }) => (
  <div class={`${COLUMNS} max-md:content-center`}>
    <span class="flex min-w-0 gap-3">
      <State state={message.state} />
      <span class="text-quiet truncate text-sm md:hidden">{message.reason ?? message.kind}</span>
    </span>
    <span class="text-quiet truncate max-md:hidden">{message.kind}</span>
    <span class="truncate max-md:col-span-2 max-md:row-start-2">{textOf(message)}</span>
    <span class="text-quiet truncate max-md:hidden">{visible(message.reason ?? '')}</span>
    <span class="text-quiet truncate font-mono text-xs max-md:hidden" title={visible(message.threadId)}>
      {visible(shortId(message.threadId))}
    </span>
    <span class="text-quiet text-right text-sm max-md:col-start-2 max-md:row-start-1">
      <Ago at={message.createdAt} />
    </span>
  </div>
)

function Letter({ id }: { readonly id: string }) {
  const { data, problem } = useResource('messages.show', { message: id }, ['message.'])
  const message = data.value
  const up = ['/inbox', 'the inbox'] as const
  if (message === undefined) return <Unread title="Message" up={up} problem={problem.value} />
  const text = message.body['text']
  return (
    <PageFrame title={`A ${message.kind}`} up={up} side={<Controls message={message} />}>
      <div class="mx-auto grid max-w-3xl gap-4">
        <p class="flex items-center gap-3">
          <State state={message.state} note={message.reason} />
        </p>
        <Bytes
          value={message.attachment ?? (typeof text === 'string' ? text : asText(message.body))}
          label="What it says"
        />
        <dl class="grid grid-cols-2 gap-3 sm:grid-cols-4">
          <Fact name="To">
            <ThreadLink id={message.threadId} />
          </Fact>
          <Fact name="From">{visible(message.from ?? 'a person')}</Fact>
          <Fact name="Sent">
            <Ago at={message.createdAt} />
          </Fact>
          <Fact name="Attempts">{message.attempts}</Fact>
          <Fact name="Key">
            <span class="font-mono text-xs" title={visible(message.key)}>
              {visible(message.key)}
            </span>
          </Fact>
          {message.consumedByRun !== undefined && (
            <Fact name="Taken by">
              <RunLink id={message.consumedByRun} />
            </Fact>
          )}
        </dl>
      </div>
    </PageFrame>
  )
}

function Controls({ message }: { readonly message: Message }) {
  const { id } = message
  const can = message.state === 'dead' && may('operate')
  const again = async () => {
    await attempt('It was not sent again', () => call('dead.retry', { message: id }), 'It is on its way again.')
    refreshNow('messages.show')
  }
  const purge = async () => {
    if (await attempt('It was not removed', () => call('dead.purge', { message: id }), 'Removed for good.'))
      go('/inbox')
  }
  useKeys('This message', can ? { a: ['deliver it again', () => void again()] } : {})
  if (!can) return null
  return (
    <>
      <button type="button" class="button button-main" onClick={() => void again()}>
        Deliver again
      </button>
      <button type="button" class="button button-bad" onClick={() => void purge()}>
        Remove
      </button>
    </>
  )
}
