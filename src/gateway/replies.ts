/* What reading a provider's reply needs of the gateway. A worker that reads large ones loads no more of it. */
export { UpstreamFailure } from './call.ts';
export { GatewayError } from './errors.ts';
export { parseJson, type JsonLimits } from './json-guard.ts';
