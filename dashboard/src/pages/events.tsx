import type { Event } from '../api/shapes.ts'
import { ABOUT, TYPES_ABOUT } from '../look/event-types.ts'
import { asText, brief, shortId, visible } from '../look/words.ts'
import { Bytes } from '../parts/bytes.tsx'
import { Choice, List } from '../parts/list.tsx'
import { PageFrame, Trouble, Waiting } from '../parts/page.tsx'
import { Ago, Empty, Fact, RunLink, ThreadLink } from '../parts/small.tsx'
import { usePaged } from '../state/paged.ts'
import { useResource } from '../state/resource.ts'
import { search } from '../state/router.ts'

export const Events = ({ id }: { readonly id?: string | undefined }) =>
  id === undefined ? <Log /> : <One key={id} seq={Number(id)} />

function Log() {
  const noun = search.value.get('about') ?? ''
  const pages = usePaged(
    'events.list',
    noun === '' ? {} : { type: [...(TYPES_ABOUT[noun] ?? [])] },
    { id: ({ seq }) => String(seq), wakes: TYPES_ABOUT[noun] ?? [''] },
    'before',
  )
  return (
    <PageFrame title="Events" filled side={<Choice name="about" label="About" options={ABOUT} value={noun} />}>
      <List
        pages={pages}
        label="Events"
        heights={[33, 53]}
        id={(event) => String(event.seq)}
        href={(event) => `/events/${event.seq}`}
        head={HEAD}
        row={(event) => <Row event={event} />}
        empty={<Empty title="Nothing has happened yet" />}
      />
    </PageFrame>
  )
}

const COLUMNS =
  'grid h-full items-center gap-x-4 px-4 text-sm md:px-6 grid-cols-[3.5rem_1fr_auto] md:grid-cols-[4.5rem_12rem_9rem_minmax(0,1fr)_5.5rem]'

const HEAD = (
  <div class={`${COLUMNS} text-xs`}>
    <span>Number</span>
    <span>Type</span>
    <span>About</span>
    <span>Data</span>
  </div>
)

const Row = ({ event }: { readonly event: Event }) => (
  <div class={`${COLUMNS} max-md:content-center`}>
    <span class="text-quiet font-mono text-xs">{event.seq}</span>
    <span class="truncate font-medium">{visible(event.type)}</span>
    <span class="text-quiet truncate font-mono text-xs max-md:hidden">
      {visible(shortId(event.runId ?? event.threadId ?? ''))}
    </span>
    <span class="text-quiet truncate font-mono text-xs max-md:col-span-3 max-md:row-start-2">{brief(event.data)}</span>
    <span class="text-quiet text-right max-md:col-start-3 max-md:row-start-1">
      <Ago at={event.at} />
    </span>
  </div>
)

function One({ seq }: { readonly seq: number }) {
  const { data, problem } = useResource('events.list', { before: seq + 1, limit: 1 })
  // The newest up to its number: another one, if it was forgotten.
  const event = data.value?.items.find((each) => each.seq === seq)
  const up = ['/events', 'events'] as const
  if (event === undefined)
    return (
      <PageFrame title="Event" up={up}>
        <Trouble problem={problem.value} />
        {problem.value === undefined && data.value === undefined && <Waiting rows={2} />}
        {data.value !== undefined && (
          <Empty title="There is no such event">It was forgotten, or has not happened yet.</Empty>
        )}
      </PageFrame>
    )
  return (
    <PageFrame title={event.type} up={up}>
      <div class="mx-auto grid max-w-3xl gap-4">
        <dl class="grid grid-cols-2 gap-3 sm:grid-cols-4">
          <Fact name="Number">{event.seq}</Fact>
          <Fact name="At">
            <Ago at={event.at} />
          </Fact>
          {event.runId !== undefined && (
            <Fact name="Run">
              <RunLink id={event.runId} />
            </Fact>
          )}
          {event.threadId !== undefined && (
            <Fact name="Thread">
              <ThreadLink id={event.threadId} />
            </Fact>
          )}
        </dl>
        <Bytes value={asText(event.data)} label="Data" />
      </div>
    </PageFrame>
  )
}
