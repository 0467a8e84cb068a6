import { Empty } from '../parts/small.tsx'
import { PageFrame } from '../parts/page.tsx'

export const NotFound = () => (
  <PageFrame title="Not here">
    <Empty title="There is no such page">
      <a class="link" href="/">
        Home
      </a>{' '}
      has what needs you.
    </Empty>
  </PageFrame>
)
