import type { ReactNode } from 'react';
import { Heading } from '../../ui/heading.tsx';

export default function ProvidersPage(): ReactNode {
  return <Heading title="Providers" lead="Who serves what." />;
}
