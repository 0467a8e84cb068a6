import type { ComponentChildren } from 'preact'

import type { Problem } from '../api/client.ts'
import { visible } from '../look/words.ts'
import { Icon } from './icon.tsx'

interface Props {
  readonly title: ComponentChildren
  /** Where this belongs: the list above it. */
  readonly up?: readonly [to: string, name: string]
  readonly side?: ComponentChildren
  readonly children: ComponentChildren
  /** The page scrolls in itself: a list, a conversation. */
  readonly filled?: boolean
}

export function PageFrame({ title, up, side, children, filled = false }: Props) {
  return (
    <div class={`flex flex-col ${filled ? 'h-full min-h-0' : 'min-h-full'}`}>
      <header class="border-line bg-ground sticky top-0 z-10 flex min-h-14 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b px-4 py-2 md:px-6">
        {up !== undefined && (
          <a href={up[0]} class="text-quiet hover:text-ink -ml-1 flex items-center" aria-label={`Back to ${up[1]}`}>
            <Icon name="back" />
          </a>
        )}
        <h1 class="min-w-32 flex-1 truncate">{title}</h1>
        <div class="flex max-w-full min-w-0 items-center gap-2">{side}</div>
      </header>
      <div class={filled ? 'flex min-h-0 flex-1 flex-col' : 'flex-1 px-4 py-5 md:px-6'}>{children}</div>
    </div>
  )
}

export const Section = ({
  title,
  side,
  children,
}: {
  readonly title: string
  readonly side?: ComponentChildren
  readonly children: ComponentChildren
}) => (
  <section class="mb-7" aria-label={title}>
    <div class="mb-2 flex min-h-7 items-center gap-3">
      <h2 class="text-quiet">{title}</h2>
      <div class="ml-auto">{side}</div>
    </div>
    {children}
  </section>
)

/** What could not be read, and what to do about it. */
export function Trouble({ problem }: { readonly problem: Problem | undefined }) {
  if (problem === undefined) return null
  return (
    <div role="alert" class="border-bad bg-bad-soft m-4 rounded-md border px-3 py-2">
      <strong class="text-bad">{problem.code.startsWith('not-found/') ? 'Not here' : 'This could not be read'}:</strong>{' '}
      {visible(problem.message)}
      {problem.remedy !== undefined && <span class="text-quiet"> · {problem.remedy}</span>}
    </div>
  )
}

/** A page whose content has not come, or does not. */
export const Unread = ({ problem, ...frame }: Omit<Props, 'children'> & { readonly problem: Problem | undefined }) => (
  <PageFrame {...frame}>
    <Trouble problem={problem} />
    {problem === undefined && <Waiting />}
  </PageFrame>
)

/** Takes the room that the content will have, so that nothing jumps when it comes. */
export const Waiting = ({ rows = 6 }: { readonly rows?: number }) => (
  <div class="panel overflow-hidden" aria-busy="true" aria-label="Loading">
    {Array.from({ length: rows }, (_, index) => (
      <div key={index} class="row-line flex h-10 items-center px-3">
        <div class={`bg-hover h-2.5 rounded ${index % 3 === 0 ? 'w-1/2' : index % 3 === 1 ? 'w-2/3' : 'w-2/5'}`} />
      </div>
    ))}
  </div>
)
