create schema :"schema";
