/**
 * Builds the dashboard into dashboard/dist. With --if-needed only when that is missing or older than what it is made of, so
 * that a start that needs nothing takes no longer.
 */
import { fileURLToPath } from 'node:url'

import { buildDashboard, isDashboardFresh } from './build-dashboard.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
if (!process.argv.includes('--if-needed') || !isDashboardFresh(root)) await buildDashboard(root)
