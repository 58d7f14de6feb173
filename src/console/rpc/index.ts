export { rpcRoutes } from './rpc-routes.ts';
