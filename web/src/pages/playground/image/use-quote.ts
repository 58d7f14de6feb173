import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query';
import { api, call, type Schemas } from '../../../api/client.ts';
import { useSignedIn } from '../account-state.tsx';
import { imagePath, pricedBody, type ImageAsk } from './image-ask.ts';

/** Milliseconds after which a quote is requested again. This is before it expires. */
const FRESH_MS = 240_000;
/** Milliseconds without a change of the form before a quote is requested. */
const PAUSE_MS = 250;

/** The gateway's binding price for the requested images. */
export function useQuote(
  model: string,
  ask: ImageAsk,
): UseQueryResult<Schemas['Quote']> & { readonly key: readonly unknown[] } {
  const count = ask.images.length;
  const body = { ...pricedBody(model, ask), ...(count === 0 ? {} : { image_count: count }) };
  const path = `${imagePath(ask)}/quote`;
  const key = ['playground', 'quote', path, body] as const;
  const query = useQuery({
    queryKey: key,
    enabled: useSignedIn(),
    staleTime: FRESH_MS,
    refetchInterval: FRESH_MS,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      signal.throwIfAborted();
      return call(api.POST(`${imagePath(ask)}/quote`, { body, signal }));
    },
  });
  return { ...query, key };
}
