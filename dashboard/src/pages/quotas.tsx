import { PageFrame, Section, Trouble, Waiting } from '../parts/page.tsx'
import { Ago, Mark } from '../parts/small.tsx'
import { many, visible } from '../look/words.ts'
import { now } from '../state/clock.ts'
import { useResource } from '../state/resource.ts'

const LINE = 'row-line flex min-h-10 flex-wrap items-center gap-x-3 px-3 py-1.5 last:border-0'

export function Quotas() {
  const quotas = useResource('quotas.list', {}, ['run.', 'step.'])
  const breakers = useResource('breakers.list', {}, ['breaker.', 'run.finished'])
  return (
    <PageFrame title="Quotas and breakers">
      <div class="mx-auto max-w-4xl">
        <Section title="Accounts whose provider said to wait">
          <Trouble problem={quotas.problem.value} />
          {quotas.data.value === undefined ? (
            quotas.problem.value === undefined && <Waiting rows={2} />
          ) : quotas.data.value.items.length === 0 ? (
            <Fine>
              Every account may be called. A rate limit is shared by everybody on the account, across restarts.
            </Fine>
          ) : (
            <ul class="panel">
              {quotas.data.value.items.map(({ quota, blockedUntil, reason }) => (
                <li key={quota} class={LINE}>
                  <Mark state={Date.parse(blockedUntil) > now.value ? 'pending' : 'queued'} />
                  <span class="wrap-anywhere min-w-0 font-mono text-sm font-semibold">{visible(quota)}</span>
                  <span class="text-quiet min-w-32 flex-1 truncate" title={visible(reason)}>
                    {visible(reason)}
                  </span>
                  {Date.parse(blockedUntil) > now.value ? (
                    <span>
                      again <Ago at={blockedUntil} />
                    </span>
                  ) : (
                    <span class="text-quiet">open again, one call at a time</span>
                  )}
                </li>
              ))}
            </ul>
          )}
        </Section>
        <Section title="Agents whose credentials are refused">
          <Trouble problem={breakers.problem.value} />
          {breakers.data.value === undefined ? (
            breakers.problem.value === undefined && <Waiting rows={2} />
          ) : breakers.data.value.items.length === 0 ? (
            <Fine>
              No agent is stopped. An agent whose key is refused again and again is stopped, and tried once in a while.
            </Fine>
          ) : (
            <ul class="panel">
              {breakers.data.value.items.map(({ agent, cause, failures, openings, openUntil }) => (
                <li key={`${agent} ${cause}`} class={LINE}>
                  <Mark state={openUntil === undefined ? 'queued' : 'failed'} />
                  <span class="wrap-anywhere min-w-0 font-semibold">{visible(agent)}</span>
                  <span class="text-quiet min-w-32 flex-1 truncate">
                    {cause}: {many(failures, 'failure')}, opened {many(openings, 'time')}
                  </span>
                  {openUntil === undefined ? (
                    <span class="text-quiet">closed</span>
                  ) : (
                    <span>
                      tried <Ago at={openUntil} />
                    </span>
                  )}
                </li>
              ))}
            </ul>
          )}
        </Section>
      </div>
    </PageFrame>
  )
}

const Fine = ({ children }: { readonly children: string }) => (
  <p class="panel text-quiet flex min-h-12 items-center gap-3 px-3 py-2">
    <Mark state="done" />
    {children}
  </p>
)
