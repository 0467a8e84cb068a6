import type { Api } from '../../api/client.ts'
import type { EndpointName } from '../../api/endpoints.ts'
import type { Answer, Ask } from '../../api/routes.ts'
import { LIMITS } from '../../base/limits.ts'

type Paged = {
  [N in EndpointName]: Answer<N> extends { readonly items: readonly unknown[]; readonly next?: string | undefined }
    ? N
    : never
}[EndpointName]

/** As many as somebody wants, in pages that a daemon gives. */
export async function collect<N extends Paged>(
  api: Api,
  name: N,
  ask: Omit<Ask<N>, 'limit' | 'after'>,
  most: number,
): Promise<Answer<N>['items'][number][]> {
  const found: Answer<N>['items'][number][] = []
  for (let after: string | undefined; found.length < most;) {
    const limit = Math.min(most - found.length, LIMITS.longestPage)
    const page = await api.call(name, { ...ask, limit, ...(after === undefined ? {} : { after }) } as unknown as Ask<N>)
    const { items, next } = page as { readonly items: typeof found; readonly next?: string }
    found.push(...items)
    if (next === undefined) break
    after = next
  }
  return found
}
