import { buildDashboard, isDashboardFresh } from '../../scripts/build-dashboard.ts'
import { ROOT } from '../tidy/tree.ts'

/** The tests look at what would be served: it is built before them, if it is not there or not new. */
export default async function setup(): Promise<void> {
  if (!isDashboardFresh(ROOT)) await buildDashboard(ROOT)
}
