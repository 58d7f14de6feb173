export { rpcRoutes, type RpcDeps } from './rpc-routes.ts';
