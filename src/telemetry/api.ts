import type * as OpenTelemetry from '@opentelemetry/api'

import { HoldfastError } from '../base/errors.ts'
import { loadOptional } from '../base/optional-package.ts'

export type Api = typeof OpenTelemetry

const PACKAGE = '@opentelemetry/api'

/** The user's own copy first. All of them share one registry, so it does not matter which is found. */
export async function loadApi(folder: string): Promise<Api> {
  const loaded = (await loadOptional(PACKAGE, folder)) as Api | undefined
  if (loaded !== undefined) return loaded
  throw new HoldfastError('telemetry/no-package', `telemetry needs the package ${PACKAGE}, which is not installed`, {
    remedy: `npm install ${PACKAGE}, and an SDK that sends what it gathers; or write "telemetry": false into the configuration`,
  })
}
