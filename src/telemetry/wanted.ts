export interface TelemetrySettings {
  /** Prompts, arguments and results too; secrets in them are hidden as everywhere. */
  readonly content: boolean
}

type Variables = Readonly<Record<string, string | undefined>>

/**
 * What was configured counts. Where nothing was, a set-up of OpenTelemetry in the environment is taken for a wish: without an
 * SDK in this process it costs next to nothing.
 */
export function isWanted(configured: TelemetrySettings | false | undefined, env: Variables): boolean {
  if (env['OTEL_SDK_DISABLED'] === 'true' || configured === false) return false
  return configured !== undefined || (env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? '') !== ''
}
