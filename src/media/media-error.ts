import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError, isOfProvider } from '#errors';
import { bodyTypesOf, toHttpError, toGatewayError } from '#http';

interface MediaError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** An error in the form of the routes of images and videos: `code` is a word, such as `invalid_model`. */
export function toMediaError(error: GatewayError): MediaError {
  const { status, headers, body } = toHttpError(error);
  const { message, type, param } = body.error;
  return { status, headers, body: { ...body, error: { code: error.code, message, type, param } } };
}

type OnError = (
  error: unknown,
  request: { readonly id: string; readonly method: string; readonly url: string },
) => void;

export type MediaErrors = ReturnType<typeof mediaErrors>;

/** `below`: the path of the family. Its unknown paths get the same form. */
export const mediaErrors = (onError: OnError, below: '/image' | '/video') => ({
  errorHandler(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const known = toGatewayError(error, bodyTypesOf(request));
    const { status, headers, body } = toMediaError(known);
    if (status >= 500 && !isOfProvider(known.code))
      onError(known.code === 'internal' ? error : (known.cause ?? known), request);
    void reply.code(status).headers(headers).send(body);
  },
  config: {
    refusal: (error: GatewayError) => {
      const { body, ...answer } = toMediaError(error);
      return { ...answer, text: JSON.stringify(body) };
    },
    refusesBelow: below,
  },
});

export const unprocessable = (param: string, message: string) => new GatewayError('unprocessable', message, { param });
