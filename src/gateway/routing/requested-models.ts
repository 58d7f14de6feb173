/** The models that a request names, without repeats, first choice first. */
export function requestedModels({
  model,
  models,
}: {
  readonly model: string;
  readonly models?: readonly string[] | null;
}): readonly string[] {
  return models?.length ? [...new Set([model, ...models])] : [model];
}

/**
 * For a parsed body with `models` but without `model`: adds the first of them as `model`. Any other body is returned
 * unchanged.
 */
export function withModel(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body;
  const { model, models } = body as { readonly model?: unknown; readonly models?: unknown };
  if ((model !== undefined && model !== null) || !Array.isArray(models) || typeof models[0] !== 'string') return body;
  return { ...body, model: models[0] };
}
