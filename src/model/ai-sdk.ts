/**
 * The part of the AI SDK's LanguageModelV4 that we use, written down here so that nothing but a running agent needs its
 * packages.
 */
export interface SdkModel {
  readonly specificationVersion: string
  doStream(call: SdkCall): PromiseLike<{ readonly stream: ReadableStream<SdkPart> }>
}

export interface SdkCall {
  readonly prompt: readonly SdkMessage[]
  readonly tools: readonly {
    readonly type: 'function'
    readonly name: string
    readonly description: string
    readonly inputSchema: Readonly<Record<string, unknown>>
  }[]
  readonly includeRawChunks: boolean
  readonly abortSignal: AbortSignal
}

export type SdkMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: readonly SdkText[] }
  | { readonly role: 'assistant'; readonly content: readonly (SdkText | SdkToolCall)[] }
  | { readonly role: 'tool'; readonly content: readonly SdkToolResult[] }

export interface SdkText {
  readonly type: 'text'
  readonly text: string
}

export interface SdkToolCall {
  readonly type: 'tool-call'
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
}

export interface SdkToolResult {
  readonly type: 'tool-result'
  readonly toolCallId: string
  readonly toolName: string
  readonly output: { readonly type: 'text' | 'error-text'; readonly value: string }
}

export interface SdkUsage {
  readonly inputTokens: {
    readonly total: number | undefined
    readonly cacheRead?: number | undefined
    readonly cacheWrite?: number | undefined
  }
  readonly outputTokens: { readonly total: number | undefined }
}

/** Parts of other kinds come too and are passed over. */
export type SdkPart =
  | { readonly type: 'text-delta'; readonly delta: string }
  | {
      readonly type: 'tool-call'
      readonly toolCallId: string
      readonly toolName: string
      readonly input: string
    }
  | { readonly type: 'finish'; readonly usage: SdkUsage; readonly finishReason: { readonly unified: string } }
  | { readonly type: 'raw'; readonly rawValue: unknown }
  | { readonly type: 'error'; readonly error: unknown }
