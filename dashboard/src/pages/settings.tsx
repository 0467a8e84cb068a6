import { HooksPanel } from '../parts/settings-hooks.tsx'
import { PolicyPanel } from '../parts/settings-policy.tsx'
import { TokensPanel } from '../parts/settings-tokens.tsx'
import { PageFrame, Section } from '../parts/page.tsx'
import { Fact } from '../parts/small.tsx'
import { call } from '../api/client.ts'
import { visible } from '../look/words.ts'
import { useResource } from '../state/resource.ts'
import { caller, may, signOut } from '../state/session.ts'
import { attempt } from '../state/toast.ts'

export function Settings() {
  return (
    <PageFrame title="Settings">
      <div class="mx-auto max-w-4xl">
        <You />
        <PolicyPanel />
        {may('admin') && <TokensPanel />}
        <HooksPanel />
      </div>
    </PageFrame>
  )
}

function You() {
  const status = useResource('status', {}).data.value
  const leave = async () => {
    if (await attempt('You are still signed in', () => call('session.close', {}))) signOut('You signed out.')
  }
  const side = (
    <button type="button" class="button" onClick={() => void leave()}>
      Sign out
    </button>
  )
  return (
    <Section title="This daemon" side={side}>
      <dl class="panel grid grid-cols-2 gap-4 p-4 sm:grid-cols-4">
        <Fact name="You are">{visible(caller.value?.by ?? '')}</Fact>
        <Fact name="You may">{caller.value?.scopes.join(', ') ?? ''}</Fact>
        <Fact name="Store">{status?.engine ?? '…'}</Fact>
        <Fact name="Home">
          <span class="font-mono text-xs" title={status?.home}>
            {status?.home ?? '…'}
          </span>
        </Fact>
      </dl>
    </Section>
  )
}
