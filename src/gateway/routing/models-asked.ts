/** The models that a request names, the first choice first, each once. */
export function modelsAsked({
  model,
  models,
}: {
  readonly model: string;
  readonly models?: readonly string[] | null;
}): readonly string[] {
  return models?.length ? [...new Set([model, ...models])] : [model];
}

/**
 * A parsed body that names its models in `models` alone, with the first of them as `model`. Any other body as it is.
 */
export function withModel(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body;
  const { model, models } = body as { readonly model?: unknown; readonly models?: unknown };
  if ((model !== undefined && model !== null) || !Array.isArray(models) || typeof models[0] !== 'string') return body;
  return { ...body, model: models[0] };
}
