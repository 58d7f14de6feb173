SELECT provider FROM provider_registrations WHERE name_key = $1
