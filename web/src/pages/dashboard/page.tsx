import type { ReactNode } from 'react';
import { Heading } from '../../ui/heading.tsx';

export default function DashboardPage(): ReactNode {
  return <Heading title="Dashboard" lead="Your account." />;
}
